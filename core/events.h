#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <variant>

namespace fopd::core {

enum class Level : std::uint8_t { kTrace, kDebug, kInfo, kWarn, kError };

// One `key=value` of an event. Text is borrowed for the call of emit() only.
struct Field {
    std::string_view key;
    std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value;
};

// Interface for logging events. An event is one line of the log: `fopd.<area>.<event> key=value …`.
// Never keys, tokens or payload. Thread-safe and non-blocking: a sink that cannot keep up drops and
// counts. Repeats are rate-limited by the sink, by event name, but for those of which each says
// something of its own.
class EventSink {
public:
    virtual ~EventSink() = default;
    // `name` is a string literal such as "daemon.ready"; the sink adds the "fopd." in front.
    virtual void emit(Level level, std::string_view name, std::span<const Field> fields) = 0;
    // The same for an event that is never limited: each problem of a file that was refused, each
    // key that was changed. Only a sink that cannot keep up drops it.
    virtual void emit_each(Level level, std::string_view name, std::span<const Field> fields) {
        emit(level, name, fields);
    }
    // False when an event of this level would be thrown away, so that its fields need not be made.
    virtual bool wants(Level level) const = 0;
};

// log.emit(...) with the fields written in place.
inline void emit(EventSink& sink, Level level, std::string_view name,
                 std::initializer_list<Field> fields = {}) {
    if (!sink.wants(level)) return;
    sink.emit(level, name, std::span(fields.begin(), fields.size()));
}

// The same for sink.emit_each().
inline void emit_each(EventSink& sink, Level level, std::string_view name,
                      std::initializer_list<Field> fields = {}) {
    if (!sink.wants(level)) return;
    sink.emit_each(level, name, std::span(fields.begin(), fields.size()));
}

// Drops everything.
class NullEventSink final : public EventSink {
public:
    void emit(Level, std::string_view, std::span<const Field>) override {}
    bool wants(Level) const override { return false; }
};

}  // namespace fopd::core

#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <variant>

namespace fopd::core {

enum class Level : std::uint8_t { kTrace, kDebug, kInfo, kWarn, kError };

// One `key=value` of an event. Text is borrowed during emit() only.
struct Field {
    std::string_view key;
    std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value;
};

// Interface for logging events. An event is one line of the log: `fopd.<area>.<event> key=value …`.
// Events never contain keys, tokens or payload. Thread-safe and non-blocking: a sink that cannot
// keep up drops events and counts them. The sink limits the rate of emit() by event name.
class EventSink {
public:
    virtual ~EventSink() = default;
    // `name` is a string literal such as "daemon.ready"; the sink adds the prefix "fopd.".
    virtual void emit(Level level, std::string_view name, std::span<const Field> fields) = 0;
    // Does the same without a rate limit, for events that each carry different information, such as
    // each problem of a refused file. They are dropped only by a sink that cannot keep up.
    virtual void emit_each(Level level, std::string_view name, std::span<const Field> fields) {
        emit(level, name, fields);
    }
    // False if events of this level are discarded, so that the caller need not prepare the fields.
    virtual bool wants(Level level) const = 0;
};

// Calls sink.emit() with a list of fields.
inline void emit(EventSink& sink, Level level, std::string_view name,
                 std::initializer_list<Field> fields = {}) {
    if (!sink.wants(level)) return;
    sink.emit(level, name, std::span(fields.begin(), fields.size()));
}

// Calls sink.emit_each() with a list of fields.
inline void emit_each(EventSink& sink, Level level, std::string_view name,
                      std::initializer_list<Field> fields = {}) {
    if (!sink.wants(level)) return;
    sink.emit_each(level, name, std::span(fields.begin(), fields.size()));
}

// Drops all events.
class NullEventSink final : public EventSink {
public:
    void emit(Level, std::string_view, std::span<const Field>) override {}
    bool wants(Level) const override { return false; }
};

}  // namespace fopd::core

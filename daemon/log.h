#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/clock.h"
#include "core/events.h"
#include "core/metrics.h"
#include "daemon/log_format.h"
#include "daemon/log_writer.h"
#include "daemon/repeat_limiter.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

// The daemon's log. emit() formats the event on the caller's thread and leaves it in a bounded
// queue; one log thread writes it. The caller never waits for the output and never does I/O.
//
// Every loss is reported: events of emit() beyond the rate limit of their name as
// `fopd.log.repeated event=… count=…`; events refused by the full queue or by the output as
// `fopd.log.dropped count=…`.
//
// Thread-safe. Destroyed after everything that may emit.
class Log final : public core::EventSink, public core::MetricSource {
public:
    static constexpr std::size_t kQueueEventsMax = 4096;
    static constexpr std::size_t kQueueBytesMax = 8UL << 20;
    // close() waits this long for an output that accepts nothing,
    static constexpr Duration kCloseWait = 2s;
    // and this much longer for the log thread to end.
    static constexpr Duration kCloseMargin = 1s;

    struct Options {
        core::Level level = core::Level::kInfo;
        LogFormat format = LogFormat::kText;
        int fd = 2;  // Borrowed for the life of the log.
        // Written to instead of `fd`, in `format`, if not null.
        std::unique_ptr<LogWriter> writer{};
        // Receives reports of lost events, as fopd.audit.lost, instead of this log; outlives it.
        core::EventSink* losses = nullptr;
    };

    // `clock` outlives the log. Fails if the threads cannot be created.
    static Started<std::unique_ptr<Log>> start(Options options, const core::Clock& clock);
    // Closes, and then waits for the log thread.
    ~Log() override;

    // Writes all queued entries and pending reports; nothing may be emitted afterwards. Returns
    // false if the log thread does not end: a journal that runs but does not read blocks it for
    // ever. The process must then exit without destroying the log. From one thread; later calls do
    // nothing.
    bool close();

    void emit(core::Level level, std::string_view name,
              std::span<const core::Field> fields) override;
    void emit_each(core::Level level, std::string_view name,
                   std::span<const core::Field> fields) override;
    // Writes the event whatever the log's level is, without a rate limit, and into the room that is
    // reserved for reports. For rare events that must not be lost among others.
    void emit_always(core::Level level, std::string_view name, std::span<const core::Field> fields);
    bool wants(core::Level level) const override {
        return level >= level_.load(std::memory_order_relaxed);
    }

    // The events that were dropped since the start.
    void collect(core::MetricSink& sink) const override;

    void set_level(core::Level level) { level_.store(level, std::memory_order_relaxed); }
    core::Level level() const { return level_.load(std::memory_order_relaxed); }

    // Waits until all events emitted so far, and all reports that are due, are written; false if
    // that takes longer than `limit`.
    bool flush(Duration limit);

private:
    class Queue;

    // Reserved room lets reports in when the queue is full for ordinary events.
    enum class Room : std::uint8_t { kOrdinary, kReserved };

    Log(const Options& options, const core::Clock& clock);

    // Counts the event as dropped if there is no room.
    void post_or_count(Room room, core::Level level, std::string_view name,
                       std::span<const core::Field> fields);
    bool post(Room room, core::Level level, std::string_view name,
              std::span<const core::Field> fields);
    void report(RepeatLimiter::Which which);

    const core::Clock& clock_;
    const LogFormat format_;
    std::atomic<core::Level> level_;
    RepeatLimiter limiter_;
    std::atomic<std::uint64_t> dropped_ = 0;   // Since the start.
    std::atomic<std::uint64_t> reported_ = 0;  // How many of the dropped events were reported.
    core::EventSink* const losses_;            // Null: this log.
    std::unique_ptr<Queue> queue_;
    bool is_closed_ = false;
};

}  // namespace fopd::daemon

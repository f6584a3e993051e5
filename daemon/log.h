#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/clock.h"
#include "core/events.h"
#include "daemon/log_format.h"
#include "daemon/repeat_limiter.h"
#include "daemon/start_problem.h"

namespace fopd::daemon {

// The daemon's log. emit() formats the event on the caller's thread and leaves it in a bounded
// queue; one log thread writes it. The caller never waits for the output and never does I/O.
//
// Nothing is lost in silence: of emit(), events beyond the rate of their name are counted and
// reported as
// `fopd.log.repeated event=… count=…`; those the full queue or the output refused as
// `fopd.log.dropped count=…`.
//
// Thread-safe. Destroyed after everything that may emit.
class Log final : public core::EventSink {
public:
    static constexpr std::size_t kQueueEventsMax = 4096;
    static constexpr std::size_t kQueueBytesMax = 8UL << 20;
    // At the end an output that takes nothing is waited for this long,
    static constexpr Duration kCloseWait = 2s;
    // and the log thread for so long beyond that, to give up what it has.
    static constexpr Duration kCloseMargin = 1s;

    struct Options {
        core::Level level = core::Level::kInfo;
        LogFormat format = LogFormat::kText;
        int fd = 2;  // Borrowed for the life of the log.
    };

    // `clock` outlives the log. Fails when the threads cannot be had.
    static Started<std::unique_ptr<Log>> start(const Options& options, const core::Clock& clock);
    // Closes, and then waits for the log thread.
    ~Log() override;

    // Writes everything that is queued, and what was held back; nothing may be emitted after it.
    // False when the log thread does not come to an end: a journal that runs but does not read
    // holds it up for ever, and the log with it. The process must then end without destroying the
    // log. From one thread; a later call does nothing.
    bool close();

    void emit(core::Level level, std::string_view name,
              std::span<const core::Field> fields) override;
    void emit_each(core::Level level, std::string_view name,
                   std::span<const core::Field> fields) override;
    bool wants(core::Level level) const override {
        return level >= level_.load(std::memory_order_relaxed);
    }

    void set_level(core::Level level) { level_.store(level, std::memory_order_relaxed); }
    core::Level level() const { return level_.load(std::memory_order_relaxed); }

    // Waits until everything emitted before, and every report that is due, is written; false when
    // that took longer than `limit`.
    bool flush(Duration limit);

private:
    class Queue;

    // Reports find room where ordinary events no longer do.
    enum class Room : std::uint8_t { kOrdinary, kReserved };

    Log(const Options& options, const core::Clock& clock);

    bool post(Room room, core::Level level, std::string_view name,
              std::span<const core::Field> fields);
    void report(RepeatLimiter::Which which);

    const core::Clock& clock_;
    const LogFormat format_;
    std::atomic<core::Level> level_;
    RepeatLimiter limiter_;
    std::atomic<std::uint64_t> dropped_ = 0;
    std::unique_ptr<Queue> queue_;
    bool is_closed_ = false;
};

}  // namespace fopd::daemon

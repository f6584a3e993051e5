#include "daemon/log.h"

#include <array>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include <pthread.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/periodic_worker.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/sink.h>

#include "core/signal_mask.h"

namespace fopd::daemon {

namespace {

// How often suppressed and dropped events are checked for.
constexpr std::chrono::seconds kReportInterval{1};
// Room for reports beyond kQueueEventsMax.
constexpr std::size_t kQueueReserve = 64;

std::unique_ptr<LogWriter> make_writer(Log::Options& options) {
    if (options.writer != nullptr) return std::move(options.writer);
    if (options.format == LogFormat::kJournald) {
        return std::make_unique<JournalWriter>(options.fd);
    }
    return std::make_unique<LineWriter>(options.fd);
}

std::string format_event(LogFormat format, const LogEvent& event) {
    switch (format) {
        case LogFormat::kText: return format_text(event);
        case LogFormat::kJson: return format_json(event);
        case LogFormat::kJournald: return format_journal(event);
    }
    return {};
}

}  // namespace

// spdlog's thread pool with one thread, and the sink it writes to. When spdlog's queue is full, it
// waits or overwrites; so entries are counted here, and its queue never fills.
class Log::Queue final : public spdlog::sinks::sink {
public:
    // Starts the log thread. Throws if it cannot be created.
    Queue(std::unique_ptr<LogWriter> writer, std::atomic<std::uint64_t>& lost)
        : writer_(std::move(writer)), lost_(lost) {
        const core::SignalsBlocked blocked;
        pool_ = std::make_shared<spdlog::details::thread_pool>(
            kQueueEventsMax + kQueueReserve, 1,
            [] { pthread_setname_np(pthread_self(), "fopd-log"); });
        // The logger borrows the sink, which outlives it.
        const std::shared_ptr<spdlog::sinks::sink> borrowed(std::shared_ptr<void>(), this);
        logger_ = std::make_shared<spdlog::async_logger>("fopd", borrowed, pool_);
    }
    // Writes the queued entries.
    ~Queue() override { pool_.reset(); }

    void start_reporting(std::function<void()> report) {
        const core::SignalsBlocked blocked;
        reporter_ =
            std::make_unique<spdlog::details::periodic_worker>(std::move(report), kReportInterval);
    }
    void stop_reporting() { reporter_.reset(); }
    void limit_waiting(Duration span) { writer_->limit_waiting(span); }

    // Returns false if there is no room.
    bool post(Room room, const std::string& entry) {
        if (!enter(room, entry.size())) return false;
        // The formatted entry already has level and time.
        const spdlog::details::log_msg message(spdlog::log_clock::time_point{},
                                               spdlog::source_loc{}, "fopd", spdlog::level::info,
                                               spdlog::string_view_t(entry.data(), entry.size()));
        try {
            auto logger = logger_;
            pool_->post_log(std::move(logger), message, spdlog::async_overflow_policy::block);
        } catch (const std::exception&) {  // Out of memory.
            leave(entry.size());
            return false;
        }
        return true;
    }

    bool wait_written(Duration limit) {
        std::unique_lock lock(mutex_);
        const std::uint64_t until = entered_;
        return written_changed_.wait_for(lock, limit, [&] { return left_ >= until; });
    }

    void log(const spdlog::details::log_msg& message) override {
        const std::string_view entry(message.payload.data(), message.payload.size());
        if (!write(entry)) lost_.fetch_add(1, std::memory_order_relaxed);
        leave(entry.size());
    }
    void flush() override {}
    void set_pattern(const std::string&) override {}
    void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

private:
    bool write(std::string_view entry) {
        try {
            return writer_->write(entry);
        } catch (const std::exception&) {  // Out of memory.
            return false;
        }
    }

    bool enter(Room room, std::size_t size_bytes) {
        const std::lock_guard lock(mutex_);
        const std::size_t count_max =
            kQueueEventsMax + (room == Room::kReserved ? kQueueReserve : 0);
        const bool is_full = entered_ - left_ >= count_max || bytes_ + size_bytes > kQueueBytesMax;
        if (is_full) return false;
        ++entered_;
        bytes_ += size_bytes;
        return true;
    }

    void leave(std::size_t size_bytes) {
        const std::lock_guard lock(mutex_);
        ++left_;
        bytes_ -= size_bytes;
        written_changed_.notify_all();
    }

    const std::unique_ptr<LogWriter> writer_;
    std::atomic<std::uint64_t>& lost_;

    std::mutex mutex_;  // Never held while writing or waiting for room.
    std::condition_variable written_changed_;
    std::uint64_t entered_ = 0;
    std::uint64_t left_ = 0;
    std::size_t bytes_ = 0;

    std::shared_ptr<spdlog::details::thread_pool> pool_;
    std::shared_ptr<spdlog::async_logger> logger_;
    std::unique_ptr<spdlog::details::periodic_worker> reporter_;
};

Started<std::unique_ptr<Log>> Log::start(Options options, const core::Clock& clock) {
    std::unique_ptr<Log> log(new Log(options, clock));
    try {
        log->queue_ = std::make_unique<Queue>(make_writer(options), log->dropped_);
        log->queue_->start_reporting(
            [self = log.get()] { self->report(RepeatLimiter::Which::kDue); });
    } catch (const std::exception& problem) {
        return std::unexpected(StartProblem{
            kExitSystem,
            std::string("the log's threads cannot be started: ") + problem.what() + kThreadAdvice});
    }
    return log;
}

Log::Log(const Options& options, const core::Clock& clock)
    : clock_(clock), format_(options.format), level_(options.level), losses_(options.losses) {}

Log::~Log() {
    if (queue_ != nullptr) close();  // Null if the start failed.
}

bool Log::close() {
    if (std::exchange(is_closed_, true)) return true;
    queue_->stop_reporting();
    queue_->limit_waiting(kCloseWait);
    const auto is_written = [this] { return queue_->wait_written(kCloseWait + kCloseMargin); };
    if (!is_written()) return false;
    report(RepeatLimiter::Which::kAll);
    if (!is_written()) return false;
    // The entries that the output refused meanwhile.
    report(RepeatLimiter::Which::kAll);
    return is_written();
}

void Log::emit(core::Level level, std::string_view name, std::span<const core::Field> fields) {
    if (!wants(level)) return;
    try {
        if (limiter_.admit(name, level, clock_.now())) emit_each(level, name, fields);
        return;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
        // Out of memory: counted below.
    }
    dropped_.fetch_add(1, std::memory_order_relaxed);
}

void Log::emit_each(core::Level level, std::string_view name, std::span<const core::Field> fields) {
    if (wants(level)) post_or_count(Room::kOrdinary, level, name, fields);
}

void Log::emit_always(core::Level level, std::string_view name,
                      std::span<const core::Field> fields) {
    post_or_count(Room::kReserved, level, name, fields);
}

void Log::post_or_count(Room room, core::Level level, std::string_view name,
                        std::span<const core::Field> fields) {
    try {
        if (post(room, level, name, fields)) return;
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
        // Out of memory: counted below.
    }
    dropped_.fetch_add(1, std::memory_order_relaxed);
}

bool Log::flush(Duration limit) {
    report(RepeatLimiter::Which::kDue);
    return queue_->wait_written(limit);
}

bool Log::post(Room room, core::Level level, std::string_view name,
               std::span<const core::Field> fields) {
    const LogEvent event{.level = level, .time = clock_.wall(), .name = name, .fields = fields};
    return queue_->post(room, format_event(format_, event));
}

// Reports are written whatever the level is, because the events they count passed it.
void Log::report(RepeatLimiter::Which which) {
    for (const RepeatLimiter::Repeats& repeats : limiter_.take(which, clock_.now())) {
        const std::string event = "fopd." + repeats.name;
        const std::array fields{core::Field{"event", std::string_view(event)},
                                core::Field{"count", repeats.count}};
        if (!post(Room::kReserved, repeats.level, "log.repeated", fields))
            limiter_.give_back(repeats);
    }
    // Several threads report.
    std::uint64_t before = reported_.load();
    std::uint64_t total = 0;
    do {
        total = dropped_.load();
        if (total == before) return;
    } while (!reported_.compare_exchange_weak(before, total));
    const std::uint64_t dropped = total - before;
    if (losses_ != nullptr) {
        core::emit_each(*losses_, core::Level::kError, "audit.lost", {{"count", dropped}});
        return;
    }
    const std::array fields{core::Field{"count", dropped}};
    if (!post(Room::kReserved, core::Level::kWarn, "log.dropped", fields)) {
        reported_.fetch_sub(dropped);
    }
}

void Log::collect(core::MetricSink& sink) const {
    sink.counter("fopd_log_events_dropped",
                 "Events that the full queue or the output of the log refused.", {},
                 static_cast<double>(dropped_.load()));
}

}  // namespace fopd::daemon

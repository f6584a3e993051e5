#include "daemon/process_metrics.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include <sys/resource.h>
#include <unistd.h>

namespace fopd::daemon {

namespace {

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::optional<std::uint64_t> resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::uint64_t all_pages = 0;
    std::uint64_t resident_pages = 0;
    if (!(file >> all_pages >> resident_pages)) return std::nullopt;
    return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<std::uint64_t> open_files() {
    std::error_code failed;
    std::filesystem::directory_iterator each("/proc/self/fd", failed);
    std::uint64_t count = 0;
    while (!failed && each != std::filesystem::directory_iterator()) {
        ++count;
        each.increment(failed);
    }
    if (failed || count == 0) return std::nullopt;
    return count - 1;  // Without the one that lists them.
}

}  // namespace

ProcessMetrics::ProcessMetrics(const core::Clock& clock)
    : started_s_(static_cast<double>(clock.wall().unix_ns) / 1e9) {}

void ProcessMetrics::collect(core::MetricSink& sink) const {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) == 0) {
        sink.counter("process_cpu_seconds", "CPU time of all threads, user and system.", {},
                     seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
    }
    if (const auto bytes = resident_bytes()) {
        sink.gauge("process_resident_memory_bytes", "Memory of the process that is in use.", {},
                   static_cast<double>(*bytes));
    }
    if (const auto count = open_files()) {
        sink.gauge("process_open_fds", "Open file descriptors.", {}, static_cast<double>(*count));
    }
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        sink.gauge("process_max_fds", "The most file descriptors that may be open.", {},
                   static_cast<double>(limit.rlim_cur));
    }
    sink.gauge("process_start_time_seconds", "When the process started. Unix time.", {},
               started_s_);
}

}  // namespace fopd::daemon

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "client/fopd.hpp"
#include "client/interrupts.h"
#include "client/load_times.h"
#include "core/histogram.h"
#include "core/time.h"

namespace fopd::client {

enum class LoadOp : std::uint8_t { kPing, kEcho, kBulkEcho };

struct LoadOptions {
    libfopd::Options server;
    LoadOp op = LoadOp::kEcho;
    std::size_t size_bytes = 0;
    bool explain = false;     // Says where the time of the fops went.
    std::uint32_t depth = 1;  // Calls in flight in each job.
    std::uint32_t jobs = 1;   // Sessions, each with a thread of its own.
    Duration warm_up{};
    Duration window{};
};

// The time of the measurement.
struct LoadWindow {
    Instant begin;
    Instant end;
    bool holds(Instant from, Instant to) const { return from >= begin && to <= end; }
    // How much of the window is over at `now`. 0 before the window has begun.
    Duration over_at(Instant now) const {
        return begin == Instant{} ? Duration::zero()
                                  : std::clamp(now - begin, Duration::zero(), end - begin);
    }
};

struct LoadResult {
    core::Histogram latency;    // Latencies of calls that began and ended in the window.
    std::uint64_t errors = 0;   // Failed calls after the warm-up, also after the window's end.
    std::string first_error{};  // Words of the first counted failure. run_load() leaves it empty.
    std::unique_ptr<LoadTimes> times{};  // Null without LoadOptions::explain.
    // How long the measurement lasted: LoadOptions::window, or less if a signal ended it.
    Duration window{};
    bool interrupted = false;
};

// Generates load on a server, until the end of the window or until a signal arrives. Ends early
// with the reason if there is no session, or if a call fails permanently.
std::expected<std::unique_ptr<LoadResult>, libfopd::Outcome> run_load(const LoadOptions& options,
                                                                      Interrupts& interrupts);

}  // namespace fopd::client

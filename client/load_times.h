// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "client/time_ledger.h"
#include "core/clock.h"
#include "core/histogram.h"
#include "core/time.h"

namespace fopd::client {

// The time of a load's fops, and of each part of them. One thread adds the times, and reads the
// results when no more fops end.
class LoadTimes final : public fabric::TimesUser {
public:
    // Outlived by the clock.
    explicit LoadTimes(const core::Clock& clock) : clock_(clock) {}

    // Only fops that begin and end in this window count; before, none does. Any thread.
    void count_from(Instant begin, Instant end);

    void on_times(const fop::TimeSpent& at_server, Duration unsent, Duration total) override;
    void add(const LoadTimes& other);

    // The whole time of the fops, and their parts by CallTimes::parts().
    const core::Histogram& total() const { return total_; }
    const core::Histogram& part(std::size_t index) const { return parts_[index]; }

private:
    const core::Clock& clock_;
    std::atomic<std::int64_t> begin_ns_ = 0;
    std::atomic<std::int64_t> end_ns_ = 0;
    core::Histogram total_;
    std::array<core::Histogram, CallTimes::kPartCount> parts_;
};

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#include "client/load_times.h"

namespace fopd::client {

void LoadTimes::count_from(Instant begin, Instant end) {
    begin_ns_ = begin.time_since_epoch().count();
    end_ns_ = end.time_since_epoch().count();
}

void LoadTimes::on_times(const fop::TimeSpent& at_server, Duration unsent, Duration total) {
    const Instant now = clock_.now();
    const std::int64_t ended_ns = now.time_since_epoch().count();
    if (ended_ns > end_ns_ || (now - total).time_since_epoch().count() < begin_ns_) return;
    const auto parts = CallTimes::of_call(at_server, unsent, total).parts();
    total_.record(total);
    for (std::size_t i = 0; i < parts.size(); ++i) parts_[i].record(parts[i]);
}

void LoadTimes::add(const LoadTimes& other) {
    total_.merge(other.total_);
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].merge(other.parts_[i]);
}

}  // namespace fopd::client

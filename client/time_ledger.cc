// SPDX-License-Identifier: BSD-2-Clause
#include "client/time_ledger.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace fopd::client {

using fop::SpentOn;

Duration CallTimes::network() const {
    return std::max(total - unsent - of(SpentOn::kTotal), Duration::zero());
}

Duration CallTimes::computed() const {
    const std::span<const Duration> named = std::span(server).subspan(1);
    const Duration sum = std::accumulate(named.begin(), named.end(), Duration::zero());
    return std::max(of(SpentOn::kTotal) - sum, Duration::zero());
}

std::array<Duration, CallTimes::kPartCount> CallTimes::parts() const {
    return {unsent,
            network(),
            of(SpentOn::kPolicy),
            of(SpentOn::kBuffer),
            of(SpentOn::kLock),
            of(SpentOn::kClient),
            of(SpentOn::kRoom),
            of(SpentOn::kDiskQueue),
            of(SpentOn::kDisk),
            of(SpentOn::kLog),
            of(SpentOn::kLocality),
            computed()};
}

CallTimes CallTimes::of_call(const fop::TimeSpent& at_server, Duration unsent, Duration total) {
    CallTimes call{.total = total, .unsent = unsent};
    for (std::size_t i = 0; i < call.server.size(); ++i) {
        call.server[i] = at_server.of(static_cast<SpentOn>(i));
    }
    return call;
}

void TimeLedger::on_times(const fop::TimeSpent& at_server, Duration unsent, Duration total) {
    const CallTimes call = CallTimes::of_call(at_server, unsent, total);
    const std::lock_guard lock(mutex_);
    if (to_ != nullptr) to_->on_times(at_server, unsent, total);
    ++figures_.calls;
    CallTimes& sum = figures_.sum;
    sum.total += call.total;
    sum.unsent += call.unsent;
    for (std::size_t i = 0; i < call.server.size(); ++i) sum.server[i] += call.server[i];
    if (call.total > figures_.slowest.total) figures_.slowest = call;
}

void TimeLedger::pass_on(fabric::TimesUser& to) {
    const std::lock_guard lock(mutex_);
    to_ = &to;
}

TimeLedger::Figures TimeLedger::figures() const {
    const std::lock_guard lock(mutex_);
    return figures_;
}

}  // namespace fopd::client

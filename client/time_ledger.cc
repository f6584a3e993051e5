// SPDX-License-Identifier: BSD-2-Clause
#include "client/time_ledger.h"

#include <algorithm>

#include "fop/spent_names.h"

namespace fopd::client {

using fop::SpentOn;

Duration CallTimes::network() const {
    return std::max(total - unsent - of(SpentOn::kTotal), Duration::zero());
}

Duration CallTimes::computed() const {
    return fop::computed(*this);
}

std::array<Duration, CallTimes::kPartCount> CallTimes::parts() const {
    std::array<Duration, kPartCount> parts{unsent, network()};
    std::copy(server.begin() + 1, server.end(), parts.begin() + 2);
    parts.back() = computed();
    return parts;
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

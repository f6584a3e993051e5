// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/time.h"
#include "fabric/rpc/client.h"
#include "fop/time_spent.h"

namespace fopd::client {

// The time of one call by its parts, or the sum over many calls.
struct CallTimes {
    Duration total{};                                   // Until the answer came.
    Duration unsent{};                                  // Until the client could send it.
    std::array<Duration, fop::kSpentOnCount> server{};  // By fop::SpentOn, as the server says.

    static CallTimes of_call(const fop::TimeSpent& at_server, Duration unsent, Duration total);
    Duration of(fop::SpentOn what) const { return server[static_cast<std::size_t>(what)]; }
    // On the network, and in the client's and the server's network code.
    Duration network() const;
    // The time that the server computed: its total without all other parts.
    Duration computed() const;

    // All parts of the total, in the order in which a fop passes them: unsent, network, those by
    // fop::SpentOn but the server's total, computed.
    static constexpr std::size_t kPartCount = 2 + fop::kSpentOnCount;
    std::array<Duration, kPartCount> parts() const;
};

// Adds up the times of calls by their parts. Any thread may call its functions.
class TimeLedger final : public fabric::TimesUser {
public:
    struct Figures {
        std::uint64_t calls = 0;
        CallTimes sum{};
        CallTimes slowest{};
    };

    void on_times(const fop::TimeSpent& at_server, Duration unsent, Duration total) override;
    Figures figures() const;
    // From now on, passes the times to `to` as well. It outlives the ledger.
    void pass_on(fabric::TimesUser& to);

private:
    mutable std::mutex mutex_;
    Figures figures_;
    fabric::TimesUser* to_ = nullptr;
};

}  // namespace fopd::client

#pragma once

#include <algorithm>
#include <cstdint>

#include "core/time.h"

namespace fopd::lrs {

// The rate of requests and bytes during the last one to two seconds.
class RecentRate {
public:
    struct Amount {
        std::uint64_t requests = 0;
        std::uint64_t bytes = 0;
    };
    struct PerSecond {
        double requests = 0;
        double bytes = 0;
    };

    void add_request(std::uint64_t bytes, Instant now) {
        roll(now);
        ++current_.requests;
        current_.bytes += bytes;
    }
    PerSecond per_second(Instant now) const {
        RecentRate rolled = *this;
        rolled.roll(now);
        const Duration seen = (rolled.has_previous_ ? kWindow : Duration::zero()) +
                              std::max(now - rolled.start_, Duration::zero());
        // At least one window, so that the first requests do not count as a high rate.
        const double seconds = in_seconds(std::max(seen, kWindow));
        const auto sum = [&](std::uint64_t Amount::* part) {
            return static_cast<double>(rolled.previous_.*part + rolled.current_.*part);
        };
        return {.requests = sum(&Amount::requests) / seconds,
                .bytes = sum(&Amount::bytes) / seconds};
    }

private:
    static constexpr Duration kWindow = 1s;

    void roll(Instant now) {
        const Duration past = now - start_;
        if (past < kWindow) return;
        has_previous_ = past < 2 * kWindow;
        previous_ = has_previous_ ? current_ : Amount{};
        start_ = has_previous_ ? start_ + kWindow : now;
        current_ = {};
    }

    Instant start_{};
    Amount current_;
    Amount previous_;
    bool has_previous_ = false;
};

}  // namespace fopd::lrs

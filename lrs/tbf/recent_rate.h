#pragma once

#include <algorithm>
#include <cstdint>

#include "core/time.h"

namespace fopd::lrs {

// How much of something there was in each of the last one to two seconds.
class RecentRate {
public:
    void add(std::uint64_t amount, Instant now) {
        roll(now);
        current_ += amount;
    }
    double per_second(Instant now) const {
        RecentRate rolled = *this;
        rolled.roll(now);
        const Duration seen = (rolled.has_previous_ ? kWindow : Duration::zero()) +
                              std::max(now - rolled.start_, Duration::zero());
        const auto amount = static_cast<double>(rolled.previous_ + rolled.current_);
        // In less than a moment nothing is a rate yet.
        return amount / in_seconds(std::max(seen, kWindow));
    }

private:
    static constexpr Duration kWindow = 1s;

    void roll(Instant now) {
        const Duration past = now - start_;
        if (past < kWindow) return;
        has_previous_ = past < 2 * kWindow;
        previous_ = has_previous_ ? current_ : 0;
        start_ = has_previous_ ? start_ + kWindow : now;
        current_ = 0;
    }

    Instant start_{};
    std::uint64_t current_ = 0;
    std::uint64_t previous_ = 0;
    bool has_previous_ = false;
};

}  // namespace fopd::lrs

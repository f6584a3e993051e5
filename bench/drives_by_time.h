#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/time.h"

namespace fopd::bench {

// How many drives have been used for something, on average in each of the first spans of ten
// minutes.
class DrivesByTime {
public:
    static constexpr Duration kSpan = 10min;
    static constexpr std::size_t kSpans = 12;

    // So many drives for `lasts`, from `at` on.
    void add(Duration at, double drives, Duration lasts) {
        const auto span = static_cast<std::size_t>(at / kSpan);
        if (span < kSpans) means_[span] += drives * in_seconds(lasts) / in_seconds(kSpan);
    }
    // By the minute at which the span ends.
    std::vector<std::pair<std::size_t, double>> by_minute() const {
        std::vector<std::pair<std::size_t, double>> values;
        for (std::size_t i = 0; i < kSpans; ++i) values.emplace_back((i + 1) * 10, means_[i]);
        return values;
    }

private:
    std::array<double, kSpans> means_{};
};

}  // namespace fopd::bench

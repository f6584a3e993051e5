#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lrs/classes/bit_rows.h"

namespace fopd::lrs {

// Finds which of many ranges contain a value. The owners of the ranges are small numbers.
template <typename Value>
class IntervalIndex {
public:
    // Adds a range. `low` and `high` belong to it.
    void add(const Value& low, const Value& high, std::uint32_t owner) {
        ends_.push_back({.at = {low, false}, .owner = owner, .is_start = true});
        ends_.push_back({.at = {high, true}, .owner = owner, .is_start = false});
    }

    // After the last add(): makes a row for each span between two ends, with the owners of all
    // ranges that cover it.
    void finish(BitRows& rows, std::size_t owner_count) {
        if (ends_.empty()) return;
        std::ranges::sort(ends_, {}, &End::at);
        std::vector<BitRows::Word> current(rows.words());
        std::vector<std::uint32_t> open(owner_count);  // Ranges of one owner may overlap.
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            const End& end = ends_[i];
            if (end.is_start && open[end.owner]++ == 0) BitRows::set(current, end.owner);
            if (!end.is_start && --open[end.owner] == 0) BitRows::clear(current, end.owner);
            if (i + 1 < ends_.size() && ends_[i + 1].at == end.at) continue;
            const std::uint32_t row = rows.add();
            std::ranges::copy(current, rows.at(row).begin());
            spans_.push_back({.from = end.at, .row = row});
        }
        ends_.clear();
        ends_.shrink_to_fit();
    }

    bool empty() const { return spans_.empty(); }
    // The row of the span that contains the value; null if the value is before the first span.
    const std::uint32_t* find(const Value& value) const {
        const auto behind = std::ranges::upper_bound(spans_, Edge{value, false}, {}, &Span::from);
        return behind == spans_.begin() ? nullptr : &(behind - 1)->row;
    }

private:
    // A value, and whether the span begins after it rather than at it.
    using Edge = std::pair<Value, bool>;
    struct End {
        Edge at;
        std::uint32_t owner;
        bool is_start;
    };
    struct Span {
        Edge from;
        std::uint32_t row;
    };

    std::vector<End> ends_;  // Empty after finish().
    std::vector<Span> spans_;
};

}  // namespace fopd::lrs

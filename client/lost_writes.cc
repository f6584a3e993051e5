// SPDX-License-Identifier: BSD-2-Clause
#include "client/lost_writes.h"

#include <algorithm>

#include "client/object_call.h"
#include "fop/hex.h"

namespace fopd::client {

namespace {

constexpr std::size_t kRangesShown = 2;

std::string lost_write_text(const fop::Range& range) {
    return std::to_string(range.offset) + " to " + std::to_string(range.end() - 1);
}

// Joins ranges that overlap or touch. Beyond kRangesMax, extends the last range.
void join_all(std::vector<fop::Range>& ranges) {
    std::ranges::sort(ranges, {}, &fop::Range::offset);
    std::vector<fop::Range> apart;
    for (const fop::Range& each : ranges) {
        const bool is_full = apart.size() == LostWrites::kRangesMax;
        if (apart.empty() || (each.offset > apart.back().end() && !is_full)) {
            apart.push_back(each);
            continue;
        }
        const std::uint64_t end = std::max(apart.back().end(), each.end());
        apart.back().length = end - apart.back().offset;
    }
    ranges = std::move(apart);
}

}  // namespace

std::string describe(const LostWrite& lost) {
    std::string words = "object " + fop::to_hex(lost.fid) + ": the buffered writes to bytes ";
    for (std::size_t i = 0; i < std::min(lost.ranges.size(), kRangesShown); ++i) {
        if (i > 0) words += ", ";
        words += lost_write_text(lost.ranges[i]);
    }
    if (lost.ranges.size() > kRangesShown) {
        words += " and others up to " + std::to_string(lost.ranges.back().end() - 1);
    }
    return words + " are lost: " + lost.why;
}

void LostWrites::add(const fop::Fid& fid, const fop::Range& range, std::string_view why) {
    if (objects_.size() == kObjectsMax && !objects_.contains(fid)) {
        ++unnamed_;
        return;
    }
    LostWrite& lost = objects_[fid];
    lost.fid = fid;
    if (lost.ranges.empty()) lost.why = why;
    lost.ranges.push_back(range);
    join_all(lost.ranges);
}

std::optional<LostWrite> LostWrites::take(const fop::Fid& fid) {
    auto taken = objects_.extract(fid);
    if (taken.empty()) return std::nullopt;
    return std::move(taken.mapped());
}

std::optional<LostWrite> LostWrites::take_first() {
    if (objects_.empty()) return std::nullopt;
    return std::move(objects_.extract(objects_.begin()).mapped());
}

}  // namespace fopd::client

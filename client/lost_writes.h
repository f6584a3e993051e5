// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fop/bodies.h"
#include "fop/range.h"

namespace fopd::client {

// Buffered writes of one object that are lost for good.
struct LostWrite {
    fop::Fid fid{};
    std::vector<fop::Range> ranges{};  // Ascending, and apart from each other.
    std::string why{};                 // The first reason, for people.
};

// "object <32 digits>: what was written buffered to bytes 0 to 4095 is lost: <why>"; of many ranges
// the first ones, and where the last one ends.
std::string describe(const LostWrite& lost);

// Acknowledged buffered writes that are lost for good and were not reported to their writer yet,
// one entry for each object. Beyond kObjectsMax objects, lost writes are only counted.
// Pure.
class LostWrites {
public:
    static constexpr std::size_t kObjectsMax = 1024;
    // Of an object; those behind are taken together.
    static constexpr std::size_t kRangesMax = 64;

    void add(const fop::Fid& fid, const fop::Range& range, std::string_view why);

    bool empty() const { return objects_.empty() && unnamed_ == 0; }
    // Of this object. It is told by that.
    std::optional<LostWrite> take(const fop::Fid& fid);
    // Of any object; none: there are only unnamed ones, or none at all.
    std::optional<LostWrite> take_first();
    std::uint64_t take_unnamed() { return std::exchange(unnamed_, 0); }

private:
    std::map<fop::Fid, LostWrite> objects_;
    std::uint64_t unnamed_ = 0;
};

}  // namespace fopd::client

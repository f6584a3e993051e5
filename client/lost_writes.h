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

// Buffered writes of one object that are permanently lost.
struct LostWrite {
    fop::Fid fid{};
    std::vector<fop::Range> ranges{};  // Ascending; they neither overlap nor touch.
    std::string why{};                 // The first reason, for people.
};

// "object <32 digits>: the buffered writes to bytes 0 to 4095 are lost: <why>". If there are
// many ranges, names the first ones and the end of the last one.
std::string describe(const LostWrite& lost);

// Acknowledged buffered writes that are permanently lost, and not reported to their writer yet; one
// entry for each object. Beyond kObjectsMax objects, lost writes are only counted. Does no I/O.
class LostWrites {
public:
    static constexpr std::size_t kObjectsMax = 1024;
    // Per object. Further ranges are merged into the last one.
    static constexpr std::size_t kRangesMax = 64;

    void add(const fop::Fid& fid, const fop::Range& range, std::string_view why);

    bool empty() const { return objects_.empty() && unnamed_ == 0; }
    // Removes and returns the entry of this object: the caller reports it.
    std::optional<LostWrite> take(const fop::Fid& fid);
    // Removes and returns the entry of any object. None: no object has an entry, but there may be
    // writes that were only counted.
    std::optional<LostWrite> take_first();
    std::uint64_t take_unnamed() { return std::exchange(unnamed_, 0); }

private:
    std::map<fop::Fid, LostWrite> objects_;
    std::uint64_t unnamed_ = 0;
};

}  // namespace fopd::client

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/booked_change.h"

namespace fopd::sim {

// The possible bytes and sizes of an object: the last known state, and all changes since. The
// caller keeps the changes alive, or makes this forget them by settle().
class ObjectBytes {
public:
    // Adds a change whose range is known.
    void add(const BookedChange& change);
    // Adds an append, whose offset is not known yet: the end of the object at that time.
    void add_append(BookedChange& change);
    // Sets the offset of the append. Returns the reason why it is impossible; empty if it is
    // possible.
    std::string place_append(BookedChange& change, std::uint64_t offset);

    // The fault of a read by one fop that requested `range` and returned `bytes`; empty: none. The
    // changes that it proves are added to `look`.
    std::string judge(ObjectLook& look, const fop::Range& range, std::span<const std::byte> bytes);
    std::string judge_size(const ObjectLook& look, std::uint64_t size_bytes) const;

    // The ranges that may have bytes other than zeros, as far as known.
    std::vector<fop::Range> written_ranges() const;
    // No change is in progress, and this is the complete state.
    void settle(std::uint64_t size_bytes);
    void settle(std::uint64_t offset, std::span<const std::byte> bytes);

private:
    using Changes = std::vector<const BookedChange*>;
    struct Bounds {
        std::uint64_t least = 0;
        std::uint64_t most = 0;
    };

    void split(std::uint64_t at);
    Bounds size_bounds(const ObjectLook& look) const;
    std::byte known(std::uint64_t at) const;
    bool matches_known(std::uint64_t at, std::span<const std::byte> bytes) const;
    bool matches(const BookedChange* change, std::uint64_t at,
                 std::span<const std::byte> bytes) const;
    void witness(ObjectLook& look, std::uint64_t at, std::span<const std::byte> bytes);
    // The offset of the first byte that no change explains.
    std::optional<std::uint64_t> find_wrong(const ObjectLook& look, std::uint64_t at,
                                            std::span<const std::byte> bytes) const;
    bool shows(const BookedChange* change, const Changes& changes, const ObjectLook& look) const;
    // Whether an append with an unknown offset explains these bytes.
    bool find_append(ObjectLook& look, std::uint64_t at, std::span<const std::byte> bytes);
    // Whether some offset of such an append explains the read, in which too few of the append's
    // bytes are visible to determine that offset.
    bool may_be_append(const ObjectLook& look, std::uint64_t at,
                       std::span<const std::byte> bytes) const;
    std::string explain(const ObjectLook& look, std::uint64_t at, std::byte found) const;

    std::uint64_t known_size_ = 0;
    std::map<std::uint64_t, std::vector<std::byte>> known_;  // By offset; zeros elsewhere.
    // For each offset, the changes to the bytes from there to the next offset.
    std::map<std::uint64_t, Changes> changes_{{0, {}}};
    Changes sizes_;                       // Changes that may have changed the size.
    std::vector<BookedChange*> appends_;  // Appends with an unknown offset.
    Changes placed_;                      // Appends with a known offset.
};

}  // namespace fopd::sim

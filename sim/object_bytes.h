#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/object_change.h"

namespace fopd::sim {

// The bytes and the size that an object may have: what they were when they were last known, and
// what has been done to them since. Changes outlive it, or are forgotten by settle().
class ObjectBytes {
public:
    // Adds a change whose range is known.
    void add(const ObjectChange& change);
    // It will lie behind the end of the object, wherever that is.
    void add_append(ObjectChange& change);
    // The append lies there. Empty when that may be.
    std::string place_append(ObjectChange& change, std::uint64_t offset);

    // What is wrong with a read of one fop that wanted `range` and got `bytes`; empty: nothing.
    // What it has shown is witnessed by `look`.
    std::string judge(ObjectLook& look, const fop::Range& range, std::span<const std::byte> bytes);
    std::string judge_size(const ObjectLook& look, std::uint64_t size_bytes) const;

    // Where there may be other bytes than zeros, as far as anybody has said.
    std::vector<fop::Range> places() const;
    // Nothing is under way, and this is all there is.
    void settle(std::uint64_t size_bytes);
    void settle(std::uint64_t offset, std::span<const std::byte> bytes);

private:
    using Changes = std::vector<const ObjectChange*>;
    struct Bounds {
        std::uint64_t least = 0;
        std::uint64_t most = 0;
    };

    void split(std::uint64_t at);
    Bounds size_bounds(const ObjectLook& look) const;
    std::byte known(std::uint64_t at) const;
    bool matches(const ObjectChange* change, std::uint64_t at,
                 std::span<const std::byte> bytes) const;
    void witness(ObjectLook& look, std::uint64_t at, std::span<const std::byte> bytes);
    // Where the first byte is that nothing explains.
    std::optional<std::uint64_t> find_wrong(const ObjectLook& look, std::uint64_t at,
                                            std::span<const std::byte> bytes) const;
    bool shows(const ObjectChange* change, const Changes& changes, const ObjectLook& look) const;
    // Whether an append whose place nobody knows has left these bytes.
    bool find_append(ObjectLook& look, std::uint64_t at, std::span<const std::byte> bytes);
    // Whether there is a place for one of them where it explains the read, of which too few of its
    // bytes are to tell the place.
    bool may_be_append(const ObjectLook& look, std::uint64_t at,
                       std::span<const std::byte> bytes) const;
    std::string explain(const ObjectLook& look, std::uint64_t at, std::byte found) const;

    std::uint64_t known_size_ = 0;
    std::map<std::uint64_t, std::vector<std::byte>> known_;  // By offset; zeros elsewhere.
    // What was done since to the bytes from each offset to the next one.
    std::map<std::uint64_t, Changes> changes_{{0, {}}};
    Changes sizes_;                       // What may have changed the size.
    std::vector<ObjectChange*> appends_;  // Whose place is not known.
    Changes placed_;                      // Appends whose place is.
};

}  // namespace fopd::sim

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/result.h"
#include "store/copy.h"
#include "store/fid.h"
#include "store/layered_index.h"
#include "store/object.h"

namespace fopd::store {

// How much of a cartridge's recorded copies is live. Bytes are those of objects, without labels and
// headers of the tape.
struct CartridgeUse {
    Cartridge cartridge{};
    std::uint64_t live_copies = 0;
    std::uint64_t live_bytes = 0;
    std::uint64_t total_copies = 0;  // Live and dead.
    std::uint64_t total_bytes = 0;

    std::uint64_t dead_bytes() const { return total_bytes - live_bytes; }
};

// The live copies of the objects of a disk on cartridges, by object and by position on the
// cartridge. A copy of another version of the content than the object has is dead: it is not in the
// index, and counts as the difference between the total of its cartridge and the live copies there.
// Part of ObjectMap.
//
// An operation that fails has changed nothing. Lives on the volume's reactor.
class Copies {
public:
    // The index outlives it.
    explicit Copies(LayeredIndex& index) : index_(index) {}

    Result<std::optional<Copy>> find(const CopyKey& key);
    // The copies of an object, by ascending offset; found() has them.
    Result<void> find_of(Fid fid);
    // Finds the object's copies that are dead if `object` is its present state.
    Result<void> find_dead_of(Fid fid, const Object& object);
    const std::vector<Copy>& found() const { return found_; }
    // Removes all that the last search has found.
    void erase_found();

    // Replaces the copy that has the same key.
    Result<void> put(const Copy& copy);
    Result<void> erase(const CopyKey& key);
    void put_total(const CartridgeTotal& total);
    void erase_total(const VsnText& vsn);

    // Whether the copies have all bytes of this content, [0, size_bytes), apart from the excluded
    // ones, which are sorted.
    Result<bool> cover(Fid fid, const Object& object, const std::vector<CopyKey>& excluded = {});
    // The copies on a cartridge from a position on, in the order of the tape: at most `count_max`,
    // in one turn.
    Result<std::vector<Copy>> on(const VsnText& vsn, CopyPosition from, std::size_t count_max);
    // The key of the copy that lies at a position of a cartridge.
    Result<std::optional<CopyKey>> at(const VsnText& vsn, CopyPosition position);

    // -- figures --
    //
    // Counted anew when a volume is opened, and kept up to date from then on.

    void forget_use() { use_.clear(); }
    void count(const Copy& copy, std::int64_t copies = 1);
    void count(const CartridgeTotal& total);
    // By ascending VSN.
    const std::map<VsnText, CartridgeUse>& use() const { return use_; }
    // Of a cartridge; zeros if nothing was recorded of it.
    CartridgeUse use_of(const VsnText& vsn) const;

private:
    Result<bool> any();
    Result<void> search(Fid fid, const Object* dead_for);
    Result<bool> owns_position(const Copy& copy);
    void erase_keys(const Copy& copy, bool has_position);

    LayeredIndex& index_;
    std::vector<Copy> found_;
    std::vector<bool> has_position_;  // Of each copy found, whether the position is its own.
    std::map<VsnText, CartridgeUse> use_;
    // Whether there may be copies. None: unknown.
    std::optional<bool> any_;
};

}  // namespace fopd::store

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "store/allocator.h"
#include "store/extent.h"

namespace fopd::store {

// Records which blocks of a disk have an owner, for VolumeCheck: one bit for each block of the
// allocator. Blocks that are not the allocator's are ignored.
class BlockOwners {
public:
    // How many words of the bits one call examines.
    static constexpr std::size_t kWordsATurn = 16'384;

    // The allocator outlives it.
    explicit BlockOwners(const Allocator& space) : space_(space), owned_(space.used().size(), 0) {}

    std::size_t words() const { return owned_.size(); }
    bool covers(std::uint64_t block) const {
        const std::uint64_t first = space_.first_block();
        return block >= first && block < first + owned_.size() * kWordBits;
    }
    // REQUIRES: covers(block).
    bool is_owned(std::uint64_t block) const;
    void set_owned(DiskRange range);
    // Forgets the owners in kWordsATurn words.
    void forget(std::size_t word);

    // Notes the blocks in kWordsATurn words that are in use and have no owner.
    void look_for_unowned(std::size_t word);
    // Forgets noted ranges that have got an owner, or are free, meanwhile.
    void drop_owned();
    const std::vector<DiskRange>& unowned() const { return unowned_; }

private:
    static constexpr std::size_t kWordBits = 64;

    bool is_unowned(DiskRange range) const;

    const Allocator& space_;
    std::vector<std::uint64_t> owned_;
    std::vector<DiskRange> unowned_;
};

}  // namespace fopd::store

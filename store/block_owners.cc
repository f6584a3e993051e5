#include "store/block_owners.h"

#include <algorithm>
#include <bit>
#include <span>

namespace fopd::store {

namespace {

// At most so many ranges are reported, for a disk that is damaged as a whole.
constexpr std::size_t kUnownedMax = 4096;

}  // namespace

bool BlockOwners::is_owned(std::uint64_t block) const {
    block -= space_.first_block();
    return (owned_[block / kWordBits] >> (block % kWordBits) & 1) != 0;
}

void BlockOwners::set_owned(DiskRange range) {
    const std::uint64_t first = space_.first_block();
    for (std::uint64_t block = range.block; block < range.block + range.count; ++block) {
        if (!covers(block)) continue;
        owned_[(block - first) / kWordBits] |= 1ULL << ((block - first) % kWordBits);
    }
}

void BlockOwners::forget(std::size_t word) {
    const std::size_t count = std::min(kWordsATurn, owned_.size() - word);
    std::ranges::fill(std::span(owned_).subspan(word, count), 0);
}

void BlockOwners::look_for_unowned(std::size_t word) {
    const auto used = space_.used();
    const std::size_t end = std::min(used.size(), word + kWordsATurn);
    for (; word < end; ++word) {
        std::uint64_t bits = used[word] & ~owned_[word];
        for (; bits != 0; bits &= bits - 1) {
            const std::uint64_t block = space_.first_block() + word * kWordBits +
                                        static_cast<std::uint64_t>(std::countr_zero(bits));
            if (!unowned_.empty() && unowned_.back().block + unowned_.back().count == block) {
                ++unowned_.back().count;
            } else if (unowned_.size() < kUnownedMax) {
                unowned_.push_back({.block = block, .count = 1});
            }
        }
    }
}

void BlockOwners::drop_owned() {
    std::erase_if(unowned_, [this](DiskRange range) { return !is_unowned(range); });
}

bool BlockOwners::is_unowned(DiskRange range) const {
    for (std::uint64_t block = range.block; block < range.block + range.count; ++block) {
        if (space_.is_used(block) && !is_owned(block)) return true;
    }
    return false;
}

}  // namespace fopd::store

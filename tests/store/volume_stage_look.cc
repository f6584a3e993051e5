// The part of a machine's life that compares: an object is read back from the volume, and must be
// as its owner knows it.

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/crc32c.h"
#include "tests/store/volume_stage.h"

namespace fopd::store::testing {

namespace {

std::uint64_t stamp_of(std::span<const std::byte> block) {
    std::uint64_t stamp = 0;
    std::memcpy(&stamp, block.data(), sizeof stamp);
    return stamp;
}

std::string show(Fid fid, const ObjectState& state) {
    std::string text = "object " + std::to_string(fid.low) + (state.exists ? "" : " (gone)") +
                       " of " + std::to_string(state.size_bytes) + " bytes, content " +
                       std::to_string(state.version) + ":";
    for (const auto& [block, stamp] : state.stamps) {
        text += " " + std::to_string(block) + "=" + std::to_string(stamp);
    }
    return text;
}

}  // namespace

// Reads an object back, block by block, with its attributes. Nothing: it could not be read.
Task<std::optional<ObjectState>> Machine::look(Fid fid, AlignedMemory* memory) {
    ObjectState found;
    const auto object = volume_->map().find(fid);
    if (!object) {
        violate(std::string("the map cannot be read: ") + object.error().context);
        co_return std::nullopt;
    }
    if (!object->has_value()) co_return found;
    if ((*object)->mode != remains_.version) {
        violate("object " + std::to_string(fid.low) + " is of version " +
                std::to_string((*object)->mode));
    }
    found.exists = true;
    found.size_bytes = (*object)->size_bytes;
    found.version = (*object)->content_version();
    found.attribute_changes = (*object)->attribute_changes;
    const bool is_released = (*object)->is_released;
    if (plan_.tape && !read_copies(fid, found, is_released)) co_return std::nullopt;
    if (is_released) co_return found;
    struct Known {
        std::uint64_t first;
        std::uint64_t block;
        std::vector<std::uint32_t> checksums;
    };
    std::vector<Known> all;
    Reading reading;
    volume_->begin_read(reading);
    ObjectMap::Extents extents =
        volume_->map().extents(fid, {.first = 0, .count = ObjectMap::kReadBlocksMax});
    for (;;) {
        const auto extent = extents.next();
        if (!extent) {
            violate(std::string("extents cannot be read: ") + extent.error().context);
            co_return std::nullopt;
        }
        if (!extent->has_value()) break;
        all.push_back({.first = (*extent)->first,
                       .block = (*extent)->block,
                       .checksums = {(*extent)->checksums.begin(), (*extent)->checksums.end()}});
    }
    for (const Known& known : all) {
        core::Buffer into = memory->buffer();
        into.size_bytes = known.checksums.size() * kBlock;
        const core::WaitOptions wait{};
        const auto read = co_await disk_->read(into, known.block * kBlock, wait);
        if (!read) co_return std::nullopt;
        ++remains_.reads;
        for (std::size_t i = 0; i < known.checksums.size(); ++i) {
            const auto block = into.span().subspan(i * kBlock, kBlock);
            const std::uint64_t stamp = stamp_of(block);
            if (core::crc32c(block) != known.checksums[i]) {
                violate("block " + std::to_string(known.first + i) + " of object " +
                        std::to_string(fid.low) + " is not what was written; stamp " +
                        std::to_string(stamp));
                co_return std::nullopt;
            }
            found.stamps[known.first + i] = stamp;
        }
    }
    const core::WaitOptions wait{};
    const auto blocks = co_await volume_->count_blocks(fid, wait);
    if (blocks && *blocks != found.stamps.size()) {
        violate("object " + std::to_string(fid.low) + " has " +
                std::to_string(found.stamps.size()) + " blocks, counted were " +
                std::to_string(*blocks));
    }
    co_return found;
}

AlignedMemory Machine::take_memory() {
    if (spare_memory_.empty()) {
        return std::move(AlignedMemory::allocate(kExtentBlocksMax * kBlock).value());
    }
    AlignedMemory memory = std::move(spare_memory_.back());
    spare_memory_.pop_back();
    return memory;
}

Task<void> Machine::compare(Fid fid, bool after_recovery) {
    AlignedMemory memory = take_memory();
    const std::optional<ObjectState> found = co_await look(fid, &memory);
    spare_memory_.push_back(std::move(memory));
    if (!found) co_return;
    std::deque<ObjectState>& states = remains_.objects[fid];
    if (plan_.tape) compare_recall(fid, after_recovery);
    if (!after_recovery) {
        if (!(*found == states.back())) {
            violate("found " + show(fid, *found) + ", written " + show(fid, states.back()));
        }
        co_return;
    }
    const auto which = std::ranges::find(states, *found);
    if (which == states.end()) {
        violate("after a crash found " + show(fid, *found) + ", acknowledged " +
                show(fid, states.front()) + ", newest " + show(fid, states.back()));
        co_return;
    }
    // It is durable, and nothing else is.
    ObjectState kept = std::move(*which);
    states.clear();
    states.push_back(std::move(kept));
}

}  // namespace fopd::store::testing

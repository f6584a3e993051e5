// What the homes of objects do for a repack: list the copies on a cartridge, and drop those that
// other cartridges have.

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "library/staging_disks.h"
#include "objects/block_io.h"

namespace fopd::library {

namespace {

constexpr std::size_t kPageMax = 256;
// The objects that one batch of a repack recalls may take 1/kRoomParts of a disk.
constexpr std::uint64_t kRoomParts = 4;

}  // namespace

// Decides anew, for all objects with copies on this cartridge, whether they need further copies. A
// repack of the cartridge has begun or ended.
Task<Result<void>> StagingDisks::look_at_copies(objects::HomeVolume* home, store::VsnText vsn) {
    store::CopyPosition from{};
    for (;;) {
        const auto page = home->volume().copies_on(vsn, from, kPageMax);
        if (!page) co_return std::unexpected(page.error());
        if (page->empty()) break;
        for (const store::Copy& each : *page) look(each.fid, now());
        from = page->back().position;
        ++from.member;
        co_await stores_.parts().reactor.maybe_yield();
    }
    ring();
    co_return Result<void>{};
}

Result<StagingDisks::Live> StagingDisks::live_on(store::Cartridge on) {
    const auto here = check_all_here();
    if (!here) return std::unexpected(here.error());
    Live live;
    for (const auto& home : stores_.volumes()) {
        const store::CartridgeUse use = home->volume().map().copies().use_of(on.vsn);
        if (use.cartridge != on) continue;
        live.copies += use.live_copies;
        live.bytes += use.live_bytes;
    }
    return live;
}

// Whether other, good cartridges have the bytes of the copy as often as the pool wants.
bool StagingDisks::has_moved(store::Volume& volume, const store::Copy& copy) {
    const auto object = volume.map().find(copy.fid);
    if (!object || !object->has_value()) return false;
    const std::uint32_t wanted = copies_wanted((*object)->pool);
    auto copies = volume.copies_of(copy.fid);
    if (!copies) return false;
    const CountedCopies counted = counted_copies(media_, *std::move(copies));
    return counted.moves && have_copies(counted.copies, wanted, copy.offset, copy.end());
}

Result<StagingDisks::Moves> StagingDisks::list_moves(store::Cartridge on,
                                                     store::CopyPosition from) {
    const auto here = check_all_here();
    if (!here) return std::unexpected(here.error());
    Moves all;
    for (const auto& home : stores_.volumes()) {
        if (!is_staging(*home)) continue;
        store::Volume& volume = home->volume();
        all.room[home->slot()] = volume.space_use().data_blocks() * objects::kBlock / kRoomParts;
        const auto page = volume.copies_on(on.vsn, from, kPageMax);
        if (!page) return std::unexpected(page.error());
        const bool is_full = page->size() == kPageMax;
        if (is_full && (!all.known_to || page->back().position < *all.known_to)) {
            all.known_to = page->back().position;
        }
        for (const store::Copy& each : *page) {
            const auto object = volume.map().find(each.fid);
            if (!object) return std::unexpected(object.error());
            if (each.cartridge != on || !object->has_value()) continue;
            const std::uint64_t size_bytes = (*object)->size_bytes;
            const bool is_on_disk = !(*object)->is_released;
            all.moves.push_back({.copy = each,
                                 .object_bytes = size_bytes,
                                 .is_on_disk = is_on_disk,
                                 .is_done = has_moved(volume, each)});
        }
    }
    const auto position_of = [](const Move& each) { return each.copy.position; };
    std::ranges::sort(all.moves, {}, position_of);
    return all;
}

Task<Result<void>> StagingDisks::drop_moved(store::Cartridge on, std::vector<store::Fid> fids) {
    std::ranges::sort(fids);
    for (std::size_t at = 0; at < fids.size();) {
        const store::Slot slot = fids[at].slot();
        objects::HomeVolume* const home = stores_.find(slot);
        std::vector<store::CopyKey> keys;
        for (; at < fids.size() && fids[at].slot() == slot; ++at) {
            if (home == nullptr) continue;
            const auto copies = home->volume().copies_of(fids[at]);
            if (!copies) co_return std::unexpected(copies.error());
            const std::size_t free = store::Volume::kCopiesAtOnceMax - keys.size();
            if (copies->size() > free && !keys.empty()) break;
            for (const store::Copy& each : *copies) {
                const bool is_old = each.cartridge == on && has_moved(home->volume(), each);
                if (is_old && keys.size() < store::Volume::kCopiesAtOnceMax) {
                    keys.push_back(store::key_of(each));
                }
            }
        }
        if (home == nullptr || keys.empty()) continue;
        const objects::HomeVolume::Hold hold(*home);
        const core::WaitOptions wait{.cancel = &home->ending()};
        auto dropping =
            home->volume().drop_copies(std::move(keys), store::Volume::Loss::kRefused, wait);
        const auto dropped = co_await std::move(dropping);
        if (!dropped) co_return dropped;
    }
    co_return Result<void>{};
}

}  // namespace fopd::library

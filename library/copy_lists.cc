// How a locality lists and counts the copies that its objects have on a cartridge.

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "core/stable_sort.h"
#include "library/staging_disks.h"

namespace fopd::library {

namespace {

constexpr std::size_t kListedMax = 256;

}  // namespace

// An index file must list all live copies of a tape file, so no disk may be missing.
Result<void> StagingDisks::check_all_here() const {
    const Error missing{.code = Errc::kBusy, .context = "a disk of the staging is missing"};
    for (const objects::PoolId pool : pool_ids_) {
        const objects::LayoutPool* const known = stores_.layout().find_pool(pool);
        if (known == nullptr || !known->missing.empty()) return std::unexpected(missing);
    }
    for (const auto& home : stores_.volumes()) {
        if (is_staging(*home) && !home->volume().serving()) return std::unexpected(missing);
    }
    return {};
}

Result<std::vector<store::TapeEntry>> StagingDisks::list_copies(CopyCursor& cursor) {
    const auto here = check_all_here();
    if (!here) return std::unexpected(here.error());
    std::vector<store::Slot> slots;
    for (const auto& home : stores_.volumes()) {
        if (home->slot() >= cursor.slot) slots.push_back(home->slot());
    }
    std::ranges::sort(slots);
    std::vector<store::TapeEntry> entries;
    for (const store::Slot slot : slots) {
        if (slot != cursor.slot) cursor.position = cursor.first;
        cursor.slot = slot;
        store::Volume& volume = stores_.find(slot)->volume();
        for (;;) {
            const auto page = volume.copies_on(cursor.on.vsn, cursor.position, kListedMax);
            if (!page) return std::unexpected(page.error());
            if (page->empty()) break;
            for (const store::Copy& each : *page) {
                if (each.cartridge != cursor.on) continue;
                auto entry = entry_of(volume, each);
                if (!entry) return std::unexpected(entry.error());
                if (*entry) entries.push_back(**std::move(entry));
            }
            cursor.position = page->back().position;
            ++cursor.position.member;
            if (!entries.empty()) return entries;
        }
    }
    return entries;
}

Result<std::optional<store::TapeEntry>> StagingDisks::entry_of(store::Volume& volume,
                                                               const store::Copy& copy) const {
    const auto object = volume.map().find(copy.fid);
    if (!object) return std::unexpected(object.error());
    if (!object->has_value()) return std::nullopt;
    store::TapeEntry entry{.file = {.number = copy.position.file, .block = copy.block},
                           .position = copy.position.member,
                           .member = member_of(copy.fid, **object, stores_.layout())};
    entry.member.version = copy.version;
    entry.member.offset = copy.offset;
    entry.member.size_bytes = copy.length;
    entry.member.checksum = copy.checksum;
    // A name that is not valid text is left out, as in the headers on tape.
    if (!store::is_valid(entry.member)) entry.member.name.clear();
    return entry;
}

Task<Result<CopiesThere>> StagingDisks::count_copies(store::VsnText vsn) {
    // The copies of objects on a missing disk are unknown.
    if (const auto here = check_all_here(); !here) co_return std::unexpected(here.error());
    CopiesThere there;
    std::vector<store::Slot> slots;
    for (const auto& home : stores_.volumes()) slots.push_back(home->slot());
    for (const store::Slot slot : slots) {
        objects::HomeVolume* const home = stores_.find(slot);
        if (home == nullptr || !home->volume().serving()) {
            co_return std::unexpected(Error{.code = Errc::kBusy, .context = "a disk has gone"});
        }
        const objects::HomeVolume::Hold hold(*home);
        for (store::CopyPosition from;;) {
            const auto page = home->volume().copies_on(vsn, from, kListedMax);
            if (!page) co_return std::unexpected(page.error());
            if (page->empty()) break;
            for (const store::Copy& each : *page) {
                const auto counted = count_copy(*home, each, there);
                if (!counted) co_return std::unexpected(counted.error());
            }
            from = page->back().position;
            ++from.member;
            co_await stores_.parts().reactor.maybe_yield();
        }
    }
    co_return there;
}

// Counts an object at the first of its pieces, so that it counts once.
Result<void> StagingDisks::count_copy(objects::HomeVolume& home, const store::Copy& copy,
                                      CopiesThere& there) {
    const auto copies = home.volume().copies_of(copy.fid);
    if (!copies) return std::unexpected(copies.error());
    const auto first = std::ranges::find(
        *copies, copy.cartridge.vsn, [](const store::Copy& each) { return each.cartridge.vsn; });
    if (first == copies->end() || first->offset != copy.offset) return {};
    const auto object = home.volume().map().find(copy.fid);
    if (!object) return std::unexpected(object.error());
    if (!object->has_value()) return {};
    ++there.objects;
    if (!(*object)->is_released) return {};
    const auto is_elsewhere = is_on_good_media(home, **object, copy.fid, copy.cartridge.vsn);
    if (!is_elsewhere) return std::unexpected(is_elsewhere.error());
    if (*is_elsewhere) return {};
    ++there.only_here;
    const bool is_named = !(*object)->name.empty() && there.names.size() < CopiesThere::kNamesMax;
    if (is_named) there.names.emplace_back((*object)->name);
    return {};
}

// Leaves out the copies of objects that would not be on as many cartridges as their pool wants, so
// that a batch gives an object all of its copies, or none. Keeps copies whose disk cannot be read:
// the disk then refuses to record them, and the error is reported.
std::vector<store::Copy> StagingDisks::complete_ones(std::vector<store::Copy> copies) {
    std::vector<store::Copy> complete;
    core::stable_sort(copies, std::less{}, [](const store::Copy& each) { return each.fid; });
    for (std::size_t at = 0; at < copies.size();) {
        const store::Fid fid = copies[at].fid;
        std::size_t end = at;
        while (end < copies.size() && copies[end].fid == fid) ++end;
        const auto of_object = std::span(copies).subspan(at, end - at);
        at = end;
        objects::HomeVolume* const home = stores_.find(fid.slot());
        if (home == nullptr) continue;
        auto before = home->volume().copies_of(fid);
        const auto current = home->volume().map().find(fid);
        if (!before || !current) {
            complete.insert(complete.end(), of_object.begin(), of_object.end());
            continue;
        }
        std::vector<store::Copy> all = counted_copies(media_, *std::move(before)).copies;
        // If the object has changed, its copies are dead; the volume counts them.
        const std::uint32_t wanted =
            current->has_value() ? copies_wanted((*current)->pool) : std::uint32_t{1};
        all.insert(all.end(), of_object.begin(), of_object.end());
        for (const store::Copy& each : of_object) {
            const bool is_enough = wanted == 1 || each.length == 0 ||
                                   have_copies(all, wanted, each.offset, each.end());
            if (is_enough) complete.push_back(each);
        }
    }
    return complete;
}

}  // namespace fopd::library

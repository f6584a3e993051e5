// What the disks of a locality know of the copies on a cartridge.

#include <algorithm>
#include <utility>

#include "library/staging_disks.h"

namespace fopd::library {

namespace {

constexpr std::size_t kListedMax = 256;

}  // namespace

// An index says that a file has no other copies than those it lists, so all disks have to be here.
Result<void> StagingDisks::check_all_here() const {
    const Error missing{.code = Errc::kBusy, .context = "a disk of the staging is not here"};
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
        if (slot != cursor.slot) cursor.place = cursor.first;
        cursor.slot = slot;
        store::Volume& volume = stores_.find(slot)->volume();
        for (;;) {
            const auto page = volume.copies_on(cursor.on.vsn, cursor.place, kListedMax);
            if (!page) return std::unexpected(page.error());
            if (page->empty()) break;
            for (const store::Copy& each : *page) {
                if (each.cartridge != cursor.on) continue;
                auto entry = entry_of(volume, each);
                if (!entry) return std::unexpected(entry.error());
                if (*entry) entries.push_back(**std::move(entry));
            }
            cursor.place = page->back().place;
            ++cursor.place.member;
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
    store::TapeEntry entry{.file = {.number = copy.place.file, .block = copy.block},
                           .position = copy.place.member,
                           .member = member_of(copy.fid, **object, stores_.layout())};
    entry.member.version = copy.version;
    entry.member.offset = copy.offset;
    entry.member.size_bytes = copy.length;
    entry.member.checksum = copy.checksum;
    // A name that cannot be written as text is left out, as on the tape.
    if (!store::is_valid(entry.member)) entry.member.name.clear();
    return entry;
}

}  // namespace fopd::library

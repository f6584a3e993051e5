#include "daemon/tape_watch.h"

namespace fopd::daemon {

namespace {

std::uint64_t count_live_copies(const objects::Stores& stores) {
    std::uint64_t count = 0;
    for (const auto& home : stores.volumes()) {
        for (const auto& [vsn, use] : home->volume().cartridges()) count += use.live_copies;
    }
    return count;
}

}  // namespace

TapeFindings look_at_tapes(Locality& locality, const std::vector<library::Cartridge>& media) {
    TapeFindings findings;
    if (locality.library() != nullptr) findings.library = locality.library()->condition();
    if (locality.staging() == nullptr) {
        const objects::Stores* const stores = locality.stores();
        if (stores != nullptr) findings.copies_without_library = count_live_copies(*stores);
        return findings;
    }
    findings.unreadable_objects = locality.staging()->unreadable_count();
    if (media.empty()) return findings;
    for (const auto& home : locality.stores()->volumes()) {
        for (const auto& [vsn, use] : home->volume().cartridges()) {
            const library::Cartridge* const cartridge =
                library::find_cartridge(media, use.cartridge);
            if (cartridge == nullptr) continue;
            findings.live_copies[cartridge->barcode] += use.live_copies;
        }
    }
    return findings;
}

const library::LibraryCondition& TapeWatch::library() const {
    static const library::LibraryCondition kNone;
    for (const TapeFindings& each : findings_) {
        if (each.library) return *each.library;
    }
    return kNone;
}

std::uint64_t TapeWatch::live_copies(const std::string& barcode) const {
    std::uint64_t count = 0;
    for (const TapeFindings& each : findings_) {
        const auto found = each.live_copies.find(barcode);
        if (found != each.live_copies.end()) count += found->second;
    }
    return count;
}

std::uint64_t TapeWatch::copies_without_library() const {
    std::uint64_t count = 0;
    for (const TapeFindings& each : findings_) count += each.copies_without_library;
    return count;
}

std::uint64_t TapeWatch::unreadable_objects() const {
    std::uint64_t count = 0;
    for (const TapeFindings& each : findings_) count += each.unreadable_objects;
    return count;
}

}  // namespace fopd::daemon

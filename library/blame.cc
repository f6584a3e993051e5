#include "library/blame.h"

#include <algorithm>

namespace fopd::library {

Blame::Verdict Blame::failed(std::string_view drive, CartridgeId cartridge) {
    const auto is_it = [&](const Pair& each) {
        return each.drive == drive && each.cartridge == cartridge;
    };
    auto pair = std::ranges::find_if(open_, is_it);
    if (pair == open_.end()) {
        open_.push_back({.drive = std::string(drive), .cartridge = cartridge});
        pair = open_.end() - 1;
    }
    ++pair->count;
    const bool is_trusted = !is_doubtful(drive, cartridge);
    const auto shows_it = [&](const Pair& each) {
        return each.cartridge == cartridge && each.drive != drive &&
               (is_trusted || !is_doubtful(each.drive, cartridge));
    };
    if (pair->is_charged || pair->drive_works || std::ranges::any_of(open_, shows_it)) {
        for (Pair& each : open_) {
            if (each.cartridge == cartridge) each.is_charged = true;
        }
        return Verdict::kCartridge;
    }
    const auto proven = proven_.find(drive);
    std::uint32_t failures = proven == proven_.end() ? 0 : proven->second;
    std::size_t cartridges = failures;  // The drive's fault already.
    for (const Pair& each : open_) {
        if (each.drive != drive || each.drive_works) continue;
        failures += each.is_charged ? 1 : each.count;
        ++cartridges;
    }
    if (failures < limits_.drive_failures || cartridges < 2) return Verdict::kOpen;
    std::erase_if(open_, [&](const Pair& each) { return each.drive == drive; });
    return Verdict::kDrive;
}

// It has blamed another cartridge, and not worked since.
bool Blame::is_doubtful(std::string_view drive, CartridgeId cartridge) const {
    return std::ranges::any_of(open_, [&](const Pair& each) {
        return each.drive == drive && each.cartridge != cartridge && each.is_charged &&
               !each.drive_works;
    });
}

void Blame::worked(std::string_view drive, CartridgeId cartridge) {
    if (const auto proven = proven_.find(drive); proven != proven_.end()) proven_.erase(proven);
    for (Pair& each : open_) {
        if (each.drive == drive) {
            each.drive_works = true;
        } else if (each.cartridge == cartridge && !each.is_charged) {
            proven_[each.drive] += each.count;
        }
    }
    std::erase_if(open_, [&](const Pair& each) { return each.cartridge == cartridge; });
}

void Blame::forget(std::string_view drive) {
    std::erase_if(open_, [drive](const Pair& each) { return each.drive == drive; });
    if (const auto proven = proven_.find(drive); proven != proven_.end()) proven_.erase(proven);
}

bool Blame::found_damage(std::string_view drive, CartridgeId cartridge) {
    return damage_.emplace(cartridge, drive).first->second != drive;
}

std::uint32_t Blame::open_failures(std::string_view drive, CartridgeId cartridge) const {
    const auto pair = std::ranges::find_if(open_, [&](const Pair& each) {
        return each.drive == drive && each.cartridge == cartridge;
    });
    return pair == open_.end() ? 0 : pair->count;
}

}  // namespace fopd::library

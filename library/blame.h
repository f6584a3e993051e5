#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "library/cartridge.h"
#include "library/options.h"

namespace fopd::library {

// Finds out whether drives or cartridges are to blame for operations that failed: first by another
// drive, then by another cartridge. Pure.
//
// A failure is open until one of these rules decides it. A cartridge is to blame if it fails in two
// drives, or fails again in a drive that has worked with another cartridge since. A drive is to
// blame if the cartridge works in another drive, or if the drive fails with several cartridges.
// After two drives have blamed a cartridge, their failures with another cartridge do not blame that
// one before one of the drives has worked: both drives may be broken.
class Blame {
public:
    explicit Blame(HealthLimits limits = {}) : limits_(limits) {}

    enum class Verdict : std::uint8_t { kOpen, kCartridge, kDrive };

    // An operation has failed. kDrive: the drive has failed so often that it should not be used any
    // more.
    Verdict failed(std::string_view drive, CartridgeId cartridge);
    void worked(std::string_view drive, CartridgeId cartridge);
    // The drive has read data that differ from the written data. True: another drive has found that
    // with this cartridge, too.
    bool found_damage(std::string_view drive, CartridgeId cartridge);
    // An administrator has had the drive repaired.
    void forget(std::string_view drive);
    // The cartridge gets a new label, so its data are gone.
    void forget_damage(CartridgeId cartridge) { damage_.erase(cartridge); }
    // How often they have failed together since either worked.
    std::uint32_t open_failures(std::string_view drive, CartridgeId cartridge) const;
    const HealthLimits& limits() const { return limits_; }

private:
    struct Pair {
        std::string drive;
        CartridgeId cartridge = 0;
        std::uint32_t count = 0;
        bool drive_works = false;  // The drive has worked with another cartridge since the failure.
        bool is_charged = false;   // The cartridge was blamed for the failure.
    };

    bool is_doubtful(std::string_view drive, CartridgeId cartridge) const;

    const HealthLimits limits_;
    std::vector<Pair> open_;
    // By cartridge: the drive that has found the damage first.
    std::map<CartridgeId, std::string> damage_;
    // By drive: its proven failures since it last worked.
    std::map<std::string, std::uint32_t, std::less<>> proven_;
};

}  // namespace fopd::library

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "library/cartridge.h"

namespace fopd::library {

// Finds out whether drives or cartridges are to blame for operations that failed: first by another
// drive, then by another cartridge. Pure.
//
// A failure is open until one of these shows whose it was. A cartridge is to blame that failed in
// two drives, or fails again in a drive that has worked with another one since. A drive is to blame
// for what worked in another drive, and for failures with several cartridges. Drives that have
// blamed a cartridge do not blame the next one before one of them has worked: both may be broken.
class Blame {
public:
    enum class Verdict : std::uint8_t { kOpen, kCartridge, kDrive };

    // An operation has failed. kDrive: it has failed so often that it should not be used any more.
    Verdict failed(std::string_view drive, CartridgeId cartridge);
    void worked(std::string_view drive, CartridgeId cartridge);
    // The drive has read bytes that are not what was written. True: another drive has, too.
    bool found_damage(std::string_view drive, CartridgeId cartridge);
    // An administrator has had the drive repaired.
    void forget(std::string_view drive);
    // The cartridge gets a new label, and what was on it is gone.
    void forget_damage(CartridgeId cartridge) { damage_.erase(cartridge); }
    // How often they have failed together since either worked.
    std::uint32_t open_failures(std::string_view drive, CartridgeId cartridge) const;

private:
    // A drive that fails so often without working in between is not used any more.
    static constexpr std::uint32_t kDriveFailuresMax = 3;

    struct Pair {
        std::string drive;
        CartridgeId cartridge = 0;
        std::uint32_t count = 0;
        bool drive_works = false;  // It has worked with another cartridge since.
        bool is_charged = false;   // The cartridge was blamed for it.
    };

    bool is_doubtful(std::string_view drive, CartridgeId cartridge) const;

    std::vector<Pair> open_;
    std::map<CartridgeId, std::string> damage_;  // The drive that has found it first.
    std::map<std::string, std::uint32_t, std::less<>> proven_;  // By drive, since it worked.
};

}  // namespace fopd::library

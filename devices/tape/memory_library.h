#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/reactor.h"
#include "devices/power.h"
#include "devices/tape/changer.h"
#include "devices/tape/memory_tape.h"
#include "devices/tape/tape_library_image.h"

namespace fopd::devices {

// Rates in faults per million moves; none by default.
struct ChangerFaults {
    std::uint32_t busy_ppm = 0;   // kBusy: somebody has the door open.
    std::uint32_t error_ppm = 0;  // kIo: the cartridge was moved, or was not.
    std::uint32_t stuck_ppm =
        0;              // kBusy of a move out of a drive: the cartridge does not come out.
    bool gone = false;  // kIo: also an inventory fails.
    // The next move takes the cartridge of another storage element, if there is one, and succeeds.
    bool takes_other = false;
    bool reports_nothing = false;  // An inventory succeeds, and has no elements.
};

struct MemoryLibraryOptions {
    std::string name = "library";
    std::vector<std::string> technologies = {"lto9"};  // Of the drives in turn.
    std::uint64_t seed = 1;
    Power* power = nullptr;
    TapeFaults tape_faults = {};
    ChangerFaults changer_faults = {};
};

// The library of the simulated world: a TapeLibraryImage attached to a machine. Lives on its
// reactor; the image outlives it. Unlike that of a VirtualLibrary, a drive keeps its cartridge
// threaded when the machine ends, and unload() frees it.
class MemoryLibrary final : public Changer {
public:
    MemoryLibrary(core::Reactor& reactor, TapeLibraryImage& image, MemoryLibraryOptions options);

    std::string_view name() const override { return options_.name; }
    std::uint32_t drive_count() const { return image_.size().drives; }
    MemoryTape& drive(std::uint32_t index) { return *drives_[index]; }

    Task<Result<std::vector<LibraryElement>>> inventory() override;
    Task<Result<void>> move(std::uint32_t from, std::uint32_t to) override;

    // May be changed at any time.
    ChangerFaults& faults() { return options_.changer_faults; }
    std::uint64_t moves() const { return moves_; }
    std::uint64_t inventories() const { return inventories_; }

private:
    Result<void> check_move(std::uint32_t from, std::uint32_t to) const;
    std::uint32_t other_than(std::uint32_t address) const;
    Task<void> spend(Duration span);

    core::Reactor& reactor_;
    TapeLibraryImage& image_;
    MemoryLibraryOptions options_;
    core::Random random_;
    std::vector<std::unique_ptr<MemoryTape>> drives_;
    std::uint64_t moves_ = 0;
    std::uint64_t inventories_ = 0;
};

}  // namespace fopd::devices

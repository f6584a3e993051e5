#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "core/random.h"
#include "devices/memory_disk.h"
#include "devices/tape/memory_library.h"
#include "devices/tape/tape_library_image.h"
#include "library/library_bay.h"

namespace fopd::sim {

struct SimulatedLibraryOptions {
    std::uint32_t drives = 2;
    std::uint32_t cartridges = 4;
    std::uint64_t cartridge_bytes = 64UL << 20;
};

// The tape library of one simulated node, with its table of media. It outlives each life of the
// node; a power loss drops what was not durable yet.
class SimulatedLibrary final : public library::LibraryBay {
public:
    SimulatedLibrary(std::uint64_t seed, const SimulatedLibraryOptions& options);

    // The machine's power, which outlives this life.
    void begin_life(devices::Power& power);
    // Drops what was not durable at the power cut. REQUIRES: the machine's coroutines were
    // destroyed.
    void crash();

    devices::TapeLibraryImage& image() { return image_; }
    // The open library of the present life; null: none is open.
    devices::MemoryLibrary* library() { return library_; }
    // The faults of the drives and the robot from now on, also in later lives.
    struct Faults {
        devices::TapeFaults drives = {};
        devices::ChangerFaults robot = {};
    };
    void set_faults(const Faults& faults);
    // Replaces the present table of media by an earlier one, drawn from those that know the same
    // labels. False: there is none. REQUIRES: the library is not open.
    bool bring_older_media();

    Task<Result<std::unique_ptr<library::BayLibrary>>> open_library(
        core::Reactor* reactor, library::LibraryOptions options) override;
    Task<Result<std::string>> read_media(core::Reactor* reactor) override;
    Task<Result<void>> write_media(core::Reactor* reactor, std::string text) override;

private:
    class Open;

    core::Random random_;
    devices::TapeLibraryImage image_;
    devices::Power* power_ = nullptr;
    devices::MemoryLibrary* library_ = nullptr;
    Faults faults_;
    std::string media_;
    std::deque<std::string> former_media_;  // The latest at the end.
};

}  // namespace fopd::sim

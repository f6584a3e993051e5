#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/offload.h"
#include "core/reactor.h"
#include "devices/tape/deck.h"
#include "devices/tape/drive_timing.h"
#include "devices/tape/tape_drive.h"
#include "devices/tape/tape_file.h"

namespace fopd::devices {

struct VirtualDriveOptions {
    std::string name;
    std::string serial;
    std::string technology;
    TapeTiming timing = TapeTiming::kNone;
    // Of cartridges whose own text names none; 0: that of their technology.
    std::uint64_t capacity_bytes = 0;
};

// A drive of a VirtualLibrary, whose cartridges are files. A full file system is reported as the
// end of a tape is: first an early warning, then kNoSpace, after which nothing is written until
// there is room again.
class VirtualDrive final : public TapeDrive {
public:
    // The reactor and the offload outlive it. REQUIRES: the technology has a model.
    VirtualDrive(core::Reactor& reactor, core::Offload& offload, VirtualDriveOptions options);

    std::string_view name() const override { return options_.name; }
    std::string_view serial() const override { return options_.serial; }
    std::string_view technology() const override { return options_.technology; }

    Task<Result<LoadedTape>> load() override;
    Task<Result<void>> unload() override;
    // Closes the image of the tape, if one is loaded. Takes no time of a drive: a drive keeps its
    // cartridge when its daemon ends.
    Task<Result<void>> close();
    const std::optional<LoadedTape>& loaded() const override { return deck_.loaded(); }
    Task<Result<TapePosition>> position() override;
    Task<Result<TapeRead>> read(core::Buffer into) override;
    Task<Result<TapeRoom>> write(core::Buffer from) override;
    Task<Result<TapeRoom>> write_filemarks(std::uint32_t count, Marks marks) override;
    Task<Result<void>> locate(std::uint64_t block) override;
    Task<Result<void>> skip_filemarks(std::uint32_t count) override;
    Task<Result<void>> to_end_of_data() override;

    // Totals of all operations so far, by the model.
    const DriveFigures& figures() const { return timing_.figures(); }
    // How long they took by the model; 0 with TapeTiming::kNone.
    Duration clock() const { return clock_ - Instant{}; }

    // -- for the library --

    // The files of the cartridge in the drive. Empty: there is none.
    struct Cartridge {
        std::string image_path;
        std::string text_path;
        std::string boot_id;
    };
    void put(std::optional<Cartridge> cartridge);
    // An operation is in flight, or a tape is loaded.
    bool busy() const { return in_flight_ || deck_.loaded().has_value(); }

private:
    struct Opened;

    Result<Opened> open_cartridge() const;
    template <typename Change>
    Task<Result<TapeRoom>> append(RoomWanted wanted, Change change);
    template <typename MoveDeck>
    Task<Result<void>> move(MoveDeck move_deck);
    Instant now() const;
    Task<void> spend_until(Instant end);
    // The tape stays loaded if no thread can close it.
    Task<Result<void>> close_tape();

    core::Reactor& reactor_;
    core::Offload& offload_;
    const VirtualDriveOptions options_;
    std::optional<Cartridge> cartridge_;
    std::optional<TapeFile> file_;
    TapeDeck deck_;
    DriveTiming timing_;
    Instant clock_{};
    bool in_flight_ = false;
};

}  // namespace fopd::devices

#pragma once

#include <optional>

#include "library/tape_library.h"

namespace fopd::library {

// Reserves a drive for an administrator's operation. While it exists, the scheduler gives the drive
// no requests.
class TapeLibrary::Handling {
public:
    Handling(TapeLibrary& library, Unit& unit) : library_(library), unit_(unit) {
        unit_.is_handled = true;
        library_.parts_.io.set_drive_state(*unit_.device, io_sched::DeviceState::kHeld);
    }
    ~Handling() {
        unit_.is_handled = false;
        std::optional<io_sched::MediumId> medium;
        if (unit_.drive->cartridge()) medium = io_sched::MediumId{*unit_.drive->cartridge()};
        // The end of an operation tells the scheduler where the cartridge is.
        if (unit_.device->is_idle()) library_.parts_.io.set_drive_medium(*unit_.device, medium);
        library_.parts_.io.set_drive_state(*unit_.device, unit_.drive->is_down()
                                                              ? io_sched::DeviceState::kDown
                                                              : io_sched::DeviceState::kReady);
    }
    Handling(const Handling&) = delete;
    Handling& operator=(const Handling&) = delete;

private:
    TapeLibrary& library_;
    Unit& unit_;
};

}  // namespace fopd::library

#pragma once

#include <cstdint>
#include <string_view>

#include "core/time.h"
#include "devices/tape/drive_model.h"

namespace fopd::devices {

// Whether operations of a virtual drive take as long as those of a real drive.
enum class TapeTiming : std::uint8_t {
    kNone,       // Operations are as fast as the files.
    kCalculate,  // As kNone, but the drive computes how long a real drive would have taken.
    kReal,       // Operations take as long as those of a real drive.
};

// Totals of the operations of a drive, with their time by the model.
struct DriveFigures {
    std::uint64_t loads = 0;
    std::uint64_t locates = 0;  // Locates that moved the tape.
    Duration locate_time{0};
    std::uint64_t read_bytes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t flushes = 0;
    std::uint64_t backhitches = 0;
};

// Computes when the operations of a drive end. Positions are given as the number of bytes that
// precede them. Each function gets the time when the operation begins, and returns the time when it
// ends.
class DriveTiming {
public:
    // REQUIRES: the model has this drive technology.
    explicit DriveTiming(std::string_view technology);

    // Loads a cartridge of this model.
    Instant load(Instant now, const DriveModel& cartridge);
    Instant unload(Instant now);
    Instant locate(Instant now, std::uint64_t byte);
    // Reads at the position that the last operation has reached.
    Instant read(Instant now, std::uint64_t size_bytes);
    Instant write(Instant now, std::uint64_t size_bytes);
    Instant flush(Instant now);

    const DriveFigures& figures() const { return figures_; }

private:
    Instant end_writing(Instant now);

    DriveModel drive_;
    DriveModel tape_;  // The model of the cartridge that was loaded last, with the drive's rates.
    WriteStream stream_;
    std::uint64_t byte_ = 0;
    DriveFigures figures_;
};

}  // namespace fopd::devices

#pragma once

#include <cstdint>
#include <string_view>

#include "core/time.h"
#include "devices/tape/drive_model.h"

namespace fopd::devices {

// How a virtual drive makes its user feel the time of the real ones.
enum class TapeTiming : std::uint8_t {
    kNone,       // As fast as the files are.
    kCalculate,  // The same, but the drive has a clock of its own that says how long it took.
    kReal,       // It takes that long.
};

// Totals of the operations of a drive, with their time by the model.
struct DriveFigures {
    std::uint64_t loads = 0;
    std::uint64_t locates = 0;  // Those that moved the tape.
    Duration locate_time{0};
    std::uint64_t read_bytes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t flushes = 0;
    std::uint64_t backhitches = 0;
};

// Computes when the operations of a drive end. Bytes are numbers of those that precede a position.
// Each function is given the time when the operation begins, and returns when it ends.
class DriveTiming {
public:
    // REQUIRES: the model has this drive technology.
    explicit DriveTiming(std::string_view technology);

    // A cartridge of this model.
    Instant load(Instant now, const DriveModel& cartridge);
    Instant unload(Instant now);
    Instant locate(Instant now, std::uint64_t byte);
    // Goes on at the position that the last operation reached.
    Instant read(Instant now, std::uint64_t size_bytes);
    Instant write(Instant now, std::uint64_t size_bytes);
    Instant flush(Instant now);

    const DriveFigures& figures() const { return figures_; }

private:
    Instant end_writing(Instant now);

    DriveModel drive_;
    DriveModel tape_;  // Of the cartridge that was loaded last; runs at the drive's rates.
    WriteStream stream_;
    std::uint64_t byte_ = 0;
    DriveFigures figures_;
};

}  // namespace fopd::devices

#include "devices/tape/drive_timing.h"

#include "core/ensure.h"

namespace fopd::devices {

namespace {

const DriveModel& model_of(std::string_view technology) {
    const DriveModel* const model = find_drive_model(technology);
    ENSURE(model != nullptr);
    return *model;
}

}  // namespace

DriveTiming::DriveTiming(std::string_view technology)
    : drive_(model_of(technology)), tape_(drive_), stream_(model_of(technology)) {}

Instant DriveTiming::load(Instant now, const DriveModel& cartridge) {
    ++figures_.loads;
    tape_ = cartridge;
    byte_ = 0;
    stream_.tape_moved();
    return now + drive_.load;
}

Instant DriveTiming::unload(Instant now) {
    const Instant written = end_writing(now);
    const Instant rewound = written + rewind_time(tape_, position_of_byte(tape_, byte_));
    byte_ = 0;
    return rewound + drive_.unload;
}

Instant DriveTiming::locate(Instant now, std::uint64_t byte) {
    if (byte == byte_) return now;
    const Instant written = end_writing(now);
    const PhysicalPosition from = position_of_byte(tape_, byte_);
    const PhysicalPosition to = position_of_byte(tape_, byte);
    const Duration time = byte == 0 ? rewind_time(tape_, from) : locate_time(tape_, from, to);
    byte_ = byte;
    stream_.tape_moved();
    ++figures_.locates;
    figures_.locate_time += time;
    return written + time;
}

Instant DriveTiming::read(Instant now, std::uint64_t size_bytes) {
    figures_.read_bytes += size_bytes;
    byte_ += size_bytes;
    return end_writing(now) + transfer_time(drive_, size_bytes);
}

Instant DriveTiming::write(Instant now, std::uint64_t size_bytes) {
    figures_.written_bytes += size_bytes;
    byte_ += size_bytes;
    const Instant done = stream_.write(now, size_bytes);
    figures_.backhitches = stream_.backhitches();
    return done;
}

Instant DriveTiming::flush(Instant now) {
    ++figures_.flushes;
    return end_writing(now);
}

Instant DriveTiming::end_writing(Instant now) {
    const Instant done = stream_.flush(now);
    figures_.backhitches = stream_.backhitches();
    return done;
}

}  // namespace fopd::devices

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/time.h"

namespace fopd::devices {

// The times of the parts of a locate. A locate takes `base`, and in addition each of the other
// times that applies to it.
struct LocateCosts {
    Duration base = 4'290ms;
    Duration wrap_change = 6'690ms;
    Duration band_change = 3'200ms;
    // If the target is in the other half of the tape's length. Negative, because the tape reaches
    // full speed on the way anyway.
    Duration half_change = -6'040ms;
    Duration direction_change = 5'220ms;
    // If the target is on the same wrap and behind, against the direction of writing.
    Duration step_back = 11'320ms;
    Duration per_lpos = 619'200ns;
};

// A generation of drives with its own cartridges. Pure data; see drive_models() for its sources.
//
// A tape is written in wraps: the first runs from its beginning to its end, the second back, and so
// on. A longitudinal position (LPOS) is a number of marks along the length of the tape, and the
// same for all wraps.
struct DriveModel {
    std::string_view technology;  // The technology of drive and cartridge, such as "lto9".
    std::uint64_t capacity_bytes = 0;
    std::uint64_t rate_bytes_s = 0;  // The rate for data that cannot be compressed.
    // Data that come slower than this make the tape stop and reposition, again and again.
    std::uint64_t floor_bytes_s = 0;
    std::uint64_t buffer_bytes = 0;
    Duration load{0};         // From the cartridge's arrival until the drive is ready.
    Duration unload{0};       // The time to unload a rewound tape.
    Duration rewind_mean{0};  // From a random position; twice this for the whole length.
    std::uint32_t wraps = 0;
    std::uint64_t lpos_begin = 2'696;
    std::uint64_t lpos_length = 168'401;
    LocateCosts costs = {};
};

// The number of bands into which the width of a tape is divided. Bands are filled one after the
// other.
inline constexpr std::uint32_t kTapeBands = 4;
// The time that a stopped tape needs to move back before it can continue.
inline constexpr Duration kBackhitch = 3s;
// The time that a changer takes to move a cartridge.
inline constexpr Duration kChangerMove = 4s;

// All generations, the oldest first: "lto6" to "lto10".
std::span<const DriveModel> drive_models();
// Null: there is no such technology.
const DriveModel* find_drive_model(std::string_view technology);
// Null: the barcode does not end with the generation of an LTO cartridge, as "V00001L9" and
// "V00001LA" do.
const DriveModel* model_of_barcode(std::string_view barcode);
// Whether the drive can read cartridges of that technology, and write them.
bool can_read(std::string_view drive, std::string_view cartridge);
bool can_write(std::string_view drive, std::string_view cartridge);
// The model of the same tape with another capacity, which changes the data on each wrap. REQUIRES:
// capacity_bytes > 0.
DriveModel with_capacity(const DriveModel& model, std::uint64_t capacity_bytes);
// Where the early warning of a cartridge begins: so many bytes before its end, at least 1 MiB
// unless the cartridge is smaller than 4 MiB.
std::uint64_t early_warning_bytes(std::uint64_t capacity_bytes);

// A physical position on the tape: the number of the wrap, and the position along its length.
struct PhysicalPosition {
    std::uint32_t wrap = 0;
    std::uint64_t lpos = 0;

    friend bool operator==(const PhysicalPosition&, const PhysicalPosition&) = default;
};

// The position of block 0.
PhysicalPosition beginning_of(const DriveModel& model);
// The position that has `byte` bytes before it, if all wraps hold equally many; at most the end.
PhysicalPosition position_of_byte(const DriveModel& model, std::uint64_t byte);

// The time from the end of one operation to the first byte of the next one: 0 if that is at the
// same position.
Duration locate_time(const DriveModel& model, PhysicalPosition from, PhysicalPosition to);
Duration rewind_time(const DriveModel& model, PhysicalPosition from);
// At the drive's full rate.
Duration transfer_time(const DriveModel& model, std::uint64_t size_bytes);

// The buffer of a drive between the host, which writes, and the tape. The tape starts when the
// buffer is a quarter full. The buffer empties at the full rate while it is more than half full,
// and otherwise at the floor, so that the tape keeps moving. When it is empty, the tape stops, and
// has to reposition before the next start.
//
// Times are those of the caller, and never go back.
class WriteStream {
public:
    // The model outlives it.
    explicit WriteStream(const DriveModel& model) : model_(&model) {}

    // Takes a block. Returns the time when the host can continue: now, or when the buffer has room
    // for the block.
    Instant write(Instant now, std::uint64_t size_bytes);
    // Writes the buffer to the tape, which then stops. Returns the time when that has ended.
    Instant flush(Instant now);
    // The tape was moved after a flush(): the next start needs no repositioning of its own.
    void tape_moved() { at_end_of_data_ = false; }
    // How often the tape had to reposition.
    std::uint64_t backhitches() const { return backhitches_; }

private:
    void drain(Instant until);
    void start(Instant now);

    const DriveModel* model_;
    // The time at which the buffer has this state; in the future while the tape repositions.
    Instant now_{};
    std::uint64_t buffered_bytes_ = 0;
    bool moving_ = false;
    bool at_end_of_data_ = false;  // The tape stopped where it had written.
    std::uint64_t backhitches_ = 0;
};

}  // namespace fopd::devices

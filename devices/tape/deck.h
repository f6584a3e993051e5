#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/result.h"
#include "devices/tape/cartridge_text.h"
#include "devices/tape/drive_model.h"
#include "devices/tape/record_map.h"
#include "devices/tape/tape_drive.h"

namespace fopd::devices {

// Room for `count` records behind a position.
struct RoomWanted {
    std::uint32_t size_bytes = 0;  // The size of each record; 0: filemarks.
    std::uint64_t count = 1;
};

// The state of a virtual or simulated drive apart from its data: the loaded cartridge, its records
// and the position. Decides whether an operation is allowed. The drive moves the bytes, and reports
// each operation to the deck.
class TapeDeck {
public:
    // The cartridge as a drive of that technology loads it. kUnsupported: the drive cannot read it.
    static Result<LoadedTape> examine(std::string_view drive_technology, const CartridgeInfo& info,
                                      std::uint64_t default_capacity_bytes);

    // REQUIRES: no tape is loaded.
    void load(LoadedTape tape, RecordMap records);
    // Returns the records.
    RecordMap unload();
    const std::optional<LoadedTape>& loaded() const { return tape_; }
    const RecordMap& records() const { return records_; }
    // The model of the loaded cartridge.
    DriveModel model() const;
    // Ends the tape after so many bytes of the image, if its capacity is greater.
    void limit(std::uint64_t size_bytes) { limit_bytes_ = size_bytes; }

    TapePosition position() const {
        return {.block = number_, .filemarks = records_.filemarks_before(number_)};
    }
    // How many bytes of the image precede the position.
    std::uint64_t offset() const { return records_.offset_of(number_); }
    bool at_end_of_data() const { return number_ == records_.count(); }

    // The record at the position; nothing: the end of the data. kInvalid: no tape is loaded.
    Result<std::optional<TapeRecord>> next() const;
    void pass() { ++number_; }
    // The result of TapeDrive::read() for a record. Called when the position is behind the record.
    // kCorrupt: the block is unreadable. kInvalid: it has more than `room_bytes` bytes.
    static Result<TapeRead> read_result(const TapeRecord& record, std::size_t room_bytes);

    // kInvalid: the size is wrong, or no tape is loaded. kDenied: it must not be written.
    Result<TapeRoom> may_write(RoomWanted wanted) const;
    // Removes the records behind the position.
    void cut() { records_.cut(number_); }
    void wrote(RoomWanted written);

    // Move as the functions of TapeDrive. kNotFound: the data end before the target, and the
    // position is now their end. kInvalid: no tape is loaded; the position has not changed.
    Result<void> move_to_block(std::uint64_t block);
    Result<void> move_behind_filemarks(std::uint32_t count);
    Result<void> move_to_end_of_data();
    void move_to(std::uint64_t number) { number_ = number; }

private:
    Result<void> check() const;

    std::optional<LoadedTape> tape_;
    RecordMap records_;
    std::uint64_t number_ = 0;
    std::uint64_t limit_bytes_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace fopd::devices

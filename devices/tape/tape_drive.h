#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/io.h"
#include "core/result.h"
#include "core/task.h"

namespace fopd::devices {

// The largest block that is written to a cartridge. Foreign cartridges may have larger ones.
inline constexpr std::size_t kTapeBlockMax = 256UL << 10;

// A position on the tape. Blocks and filemarks have one common number, as in SCSI LOCATE(16): the
// first block or filemark has number 0, and writing or reading either adds one.
struct TapePosition {
    std::uint64_t block = 0;
    std::uint64_t filemarks = 0;  // Between the beginning of the tape and this position.

    friend bool operator==(const TapePosition&, const TapePosition&) = default;
};

// The thing that a drive finds at a position.
enum class TapeMark : std::uint8_t { kBlock, kFilemark, kEndOfData };

struct TapeRead {
    TapeMark met = TapeMark::kBlock;
    std::size_t size_bytes = 0;  // Of the block.
};

// Whether there is room behind the position. After kEarlyWarning only a little fits, enough to end
// the file that is being written: at least 1 MiB on a cartridge of 4 MiB or more. kFull: the block
// or the filemarks were not written.
enum class TapeRoom : std::uint8_t { kPlenty, kEarlyWarning, kFull };

// A cartridge as the drive that has loaded it reports it.
struct LoadedTape {
    std::string technology;  // Of the cartridge, such as "lto9".
    std::uint64_t capacity_bytes = 0;
    bool write_protected = false;
    // The image of a virtual cartridge is damaged. It can only be read then.
    bool damaged = false;
    // A cartridge that cleans the drive, and has no data.
    bool cleaning = false;
    // The number written in the cartridge's own memory, if it has one. Two cartridges never share
    // it.
    std::string serial;
};

// Whether an operation may have failed because of the drive or its cartridge: one that gets no
// answer says as much as one that fails.
constexpr bool is_drive_fault(const Error& error) {
    return error.code == Errc::kIo || error.code == Errc::kTimedOut;
}

// A tape drive. Lives on one reactor. One operation at a time: the next begins when the last has
// ended. Operations can take minutes, and cannot be cancelled, because the position would be
// unknown.
//
// A cartridge is brought to the drive by a Changer. Then it is loaded, which makes the drive ready
// at block 0, and later unloaded, after which the changer can take it away.
//
// Data that was written is durable when a later write_filemarks() that is not immediate, or sync(),
// has succeeded. After a failed write or sync, everything since the last success is unknown: a
// drive may report an error late. Writing at a position ends the data there: all data behind it are
// lost.
class TapeDrive {
public:
    virtual ~TapeDrive() = default;

    // The name in the configuration, or the library's name and the drive's number.
    virtual std::string_view name() const = 0;
    virtual std::string_view serial() const = 0;
    // Such as "lto9".
    virtual std::string_view technology() const = 0;

    // kNotFound: there is no cartridge. kUnsupported: the drive cannot read this kind of cartridge.
    // kInvalid: a tape is loaded already, or its description is wrong. kIo: it cannot be loaded;
    // the changer can take it away.
    virtual Task<Result<LoadedTape>> load() = 0;
    // Rewinds, and moves the cartridge to where the changer can take it. The drive
    // writes its buffer first; a failure of that means the same as of sync(), and the cartridge is
    // unloaded nevertheless. If loaded() is still set after a failure, the cartridge is stuck. Also
    // gives back a cartridge that an earlier process has loaded. Succeeds if the drive has an
    // unloaded cartridge. kNotFound: there is no cartridge.
    virtual Task<Result<void>> unload() = 0;
    // Set while a cartridge is loaded. Does not ask the drive.
    virtual const std::optional<LoadedTape>& loaded() const = 0;

    // The position; known without asking the drive unless an operation has failed.
    virtual Task<Result<TapePosition>> position() = 0;

    // Reads a block or meets a filemark, and moves behind it. At the end of the data the position
    // stays. kInvalid: the block is larger than `into`, and was passed; or no tape is loaded.
    // kCorrupt: the block cannot be read, and was passed. kIo: it cannot be read now; position()
    // tells where the tape is.
    virtual Task<Result<TapeRead>> read(core::Buffer into) = 0;
    // Writes one block of 1 to kTapeBlockMax bytes. kDenied: write-protected. kNoSpace: as kFull,
    // but of the storage below a virtual drive; there may be room again later.
    virtual Task<Result<TapeRoom>> write(core::Buffer from) = 0;
    // An immediate write returns before the marks, and the blocks in front of them, are durable.
    enum class Marks : std::uint8_t { kDurable, kImmediate };
    virtual Task<Result<TapeRoom>> write_filemarks(std::uint32_t count, Marks marks) = 0;
    // Makes everything written before the call durable.
    Task<Result<TapeRoom>> sync() { return write_filemarks(0, Marks::kDurable); }

    // Moves to the block or filemark with that number. kNotFound: the data end before it; the
    // position is the end of the data.
    virtual Task<Result<void>> locate(std::uint64_t block) = 0;
    // Moves forward behind `count` filemarks. kNotFound, as locate().
    virtual Task<Result<void>> skip_filemarks(std::uint32_t count) = 0;
    virtual Task<Result<void>> to_end_of_data() = 0;
};

}  // namespace fopd::devices

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/io.h"
#include "core/owned_fd.h"
#include "core/result.h"
#include "devices/tape/record_map.h"
#include "devices/tape/tape_drive.h"

namespace fopd::devices {

struct TapeFileOptions {
    std::string path;  // The path of the image; it is created when it does not exist.
    // Identifies the boot of the operating system. If it differs from that of the last use, the
    // system may have crashed and lost unsynced data. Empty: unknown, so a crash is assumed.
    std::string boot_id;
    bool read_only = false;
};

// The image of a cartridge as a file. All calls block, and belong on an Offload, one at a time.
//
// While it is written, a file beside it says how much is durable. If the last process that used the
// image was killed, every whole record is kept; if the system crashed, all durable records are.
class TapeFile {
public:
    // Opens the image and finds its records.
    static Result<TapeFile> open(TapeFileOptions options);

    // The records that it had when it was opened. Called once.
    RecordMap take_records() { return std::move(records_); }
    // It must not be written: the file system does not let us, or the image is damaged. The last
    // record of a damaged one is unreadable, and stands for everything behind.
    bool read_only() const { return options_.read_only; }
    bool damaged() const { return damaged_; }

    Result<void> read(std::uint64_t offset, core::Buffer into) const;
    // Writes a block, which becomes the end of the image; all data behind it are lost.
    // kEarlyWarning: the file system is almost full. kNoSpace: it is full, and nothing was written,
    // but the image ends at the offset if that is its size now. After another error it can only be
    // read.
    Result<TapeRoom> write(std::uint64_t offset, core::Buffer from);
    Result<TapeRoom> write_filemarks(std::uint64_t offset, std::uint32_t count);
    // The size of the image.
    std::uint64_t size_bytes() const { return size_bytes_; }
    // Makes the image up to `end` durable. After a failure it can only be read.
    Result<void> sync(std::uint64_t end);
    // Syncs the image, and removes the file beside it. Closes the image even if that fails.
    Result<void> close(std::uint64_t end);

private:
    TapeFile(TapeFileOptions options, core::OwnedFd image);

    struct Durable {
        std::uint64_t size_bytes = 0;
        std::string boot_id;
    };

    std::string durable_path() const;
    std::optional<Durable> read_durable() const;
    Result<void> open_durable();
    Result<void> keep_durable(std::uint64_t size_bytes);
    Result<void> map();
    Result<void> end_at(std::uint64_t offset);
    TapeRoom reserve(std::uint64_t end);
    Result<void> put(std::uint64_t offset, core::Buffer from) const;
    Result<TapeRoom> undo(std::uint64_t offset, const Error& error);
    std::unexpected<Error> failed(Error error);

    TapeFileOptions options_;
    core::OwnedFd image_;
    bool damaged_ = false;
    RecordMap records_;
    std::uint64_t size_bytes_ = 0;      // Of the file.
    std::uint64_t reserved_bytes_ = 0;  // The file system has space for so many.
    bool can_reserve_ = true;
    core::OwnedFd durable_;              // Open while the image is being written.
    std::uint64_t durable_bytes_ = 0;    // The bytes of the image that the file says are durable.
    std::optional<Error> failure_ = {};  // The first one of a write or sync.
};

}  // namespace fopd::devices

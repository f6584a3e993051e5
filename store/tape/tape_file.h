#pragma once

#include <cstdint>

#include "devices/tape/tape_drive.h"
#include "store/tape/labels.h"
#include "store/tape/member.h"

namespace fopd::store {

// Data blocks of a file are as large as possible, but for the last one.
inline constexpr std::uint64_t kTapeDataBytes = devices::kTapeBlockMax;

// A tape file: three labels, a filemark, data blocks, a filemark, three labels, a filemark.
struct TapeFile {
    std::uint64_t number = 0;  // From 1 on.
    // The first block of its labels. Of file 1 it is VOL1, block 0.
    std::uint64_t block = 0;
    std::uint64_t file_id = 0;
    TapeFileKind kind = TapeFileKind::kObjects;

    // The number of the first data block of the file.
    std::uint64_t first_data_block() const {
        return block + (number == 1 ? 1 : 0) + kFileLabels + 1;
    }
    // Behind the last filemark, if it has so many data blocks.
    std::uint64_t end_block(std::uint64_t data_blocks) const {
        return first_data_block() + data_blocks + 1 + kFileLabels + 1;
    }

    friend bool operator==(const TapeFile&, const TapeFile&) = default;
};

// A copy on a tape: all that a catalogue keeps to find it.
struct TapeEntry {
    TapeFile file{};
    // Where the member's header begins in the archive, i.e. in the payload of the file.
    std::uint64_t position = 0;
    Member member{};

    friend bool operator==(const TapeEntry&, const TapeEntry&) = default;
};

// The end of the written files, where the next file begins.
struct TapeEnd {
    std::uint64_t files = 0;
    std::uint64_t block = 1;  // Behind VOL1, when there are no files.
    IndexPosition index{};    // The last index file.

    // TapeFile::block of the next file.
    std::uint64_t next_file_block() const { return files == 0 ? 0 : block; }

    friend bool operator==(const TapeEnd&, const TapeEnd&) = default;
};

}  // namespace fopd::store

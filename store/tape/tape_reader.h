#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/result.h"
#include "core/task.h"
#include "devices/tape/tape_drive.h"
#include "store/tape/block_reader.h"
#include "store/tape/member.h"
#include "store/tape/pax.h"
#include "store/tape/tape_file.h"

namespace fopd::store {

// Reads the header of the member at the reader's position, through `memory`. Nothing: the archive
// ends here. kCorrupt: it is not the header of a member. Reader and memory must live until the call
// has ended.
Task<Result<std::optional<MemberHeader>>> read_member_header(
    BlockReader* reader, std::span<std::byte, kMemberHeaderBytesMax> memory);

// Reads copies from a cartridge. Lives on the drive's reactor, and uses the drive alone while one
// of its calls runs; nobody else moves the tape between open() and the end of a member. Memory: one
// block.
class TapeReader {
public:
    // The drive outlives the reader.
    TapeReader(devices::TapeDrive& drive, TapeIdentity identity)
        : drive_(drive), identity_(identity), reader_(drive_) {}

    // Moves to a copy, and compares the labels of its file and its header with the catalogue's
    // entry. Reading copies in the order of the tape moves it forward only, and compares the labels
    // of a file once for all copies that follow each other. Of the entry's member only fid,
    // version, offset, size and checksum count. kCorrupt: the context says what is missing or
    // differs.
    Task<Result<void>> open(TapeEntry entry);
    // Moves to the first member of a file, if only the number and block of the file are known.
    Task<Result<void>> open_file(TapeFile file);
    // Continues with the member behind the open one, and skips unread data of the open one. False:
    // there is none.
    Task<Result<bool>> open_next();
    // Moves behind the file, and compares its trailer with its header. The next file's labels begin
    // at the block that is returned. kCorrupt: they do not agree.
    Task<Result<std::uint64_t>> close_file();

    // The file, as its labels say.
    const TapeFile& file() const { return file_; }
    // The header of the open member.
    const MemberHeader& header() const { return header_; }
    // Where its header is in the payload of the file.
    std::uint64_t position() const { return position_; }

    // Bytes of the member, and the checksums of their blocks, computed from them.
    struct MemberBytes {
        std::span<const std::byte> bytes{};
        std::span<const std::uint32_t> checksums{};
    };
    // The bytes that follow, a whole number of blocks but for the last ones; valid until the next
    // call. Empty at the end of the member. All bytes, and the list of checksums on the tape, have
    // then been compared with the header's checksum: until then they are in doubt. kCorrupt: they
    // differ.
    Task<Result<MemberBytes>> next();

private:
    Task<Result<void>> open_labels(TapeFile file);
    std::uint64_t next_position() const;
    Task<Result<bool>> read_header();
    Result<void> compare(const TapeEntry& entry) const;
    Task<Result<void>> check_list();

    devices::TapeDrive& drive_;
    TapeIdentity identity_;
    BlockReader reader_;
    FileLabels labels_;
    TapeFile file_;
    bool labels_are_right_ = false;  // Those of file_.
    MemberHeader header_;
    std::uint64_t position_ = 0;
    std::uint64_t data_position_ = 0;  // Of the member's first byte.
    std::uint64_t rest_bytes_ = 0;
    bool ended_ = false;
    std::uint32_t digest_ = 0;

    std::array<std::byte, kMemberHeaderBytesMax> header_bytes_;
    std::array<std::uint32_t, kTapeDataBytes / kMemberBlockBytes> checksums_;
};

}  // namespace fopd::store

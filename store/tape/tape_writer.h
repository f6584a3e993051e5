#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/io.h"
#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "devices/tape/tape_drive.h"
#include "store/aligned_memory.h"
#include "store/tape/member.h"
#include "store/tape/pax.h"
#include "store/tape/tape_file.h"

namespace fopd::store {

// Where a writer gets the bytes of a member from. It may read ahead. Bytes that were not written
// yet are zeros.
class MemberSource {
public:
    virtual ~MemberSource() = default;

    // Fills `into` with the bytes of the member from `offset` on; offsets ascend. The memory is
    // aligned to 4096 bytes, and so is the size except at the end of the member.
    virtual Task<Result<void>> read(std::uint64_t offset, core::Buffer into) = 0;
    // The checksums of the blocks from `first` on; see Member::checksum. Called for all blocks, in
    // their order, before the first read() and again after the last.
    virtual Task<Result<void>> checksums(std::uint64_t first, std::span<std::uint32_t> into) = 0;
};

// Appends files to a cartridge. Lives on the drive's reactor, and uses the drive alone from open()
// on; one call at a time. Memory: one block.
//
//     open, { begin_file, add ..., end_file } ..., sync, ...
//
// A file is complete after end_file(), and durable after a later sync(). A file that an error ends
// is abandoned: it stays incomplete, and the next file replaces it. failed() then says if more is
// lost than this file.
class TapeWriter {
public:
    // The drive outlives the writer.
    TapeWriter(devices::TapeDrive& drive, TapeIdentity identity, TapeSite site);

    // Moves to the end, after comparing VOL1, the last file and the end of the data with the record
    // of the cartridge. Writes nothing. kInvalid: it is another cartridge, or one that was
    // formatted since. kCorrupt: the tape has more or fewer complete files than `end` says.
    // kDenied: it is write-protected.
    Task<Result<void>> open(TapeEnd end);

    // The id is that of the file's labels; no other file has it. kNoSpace: the end of the tape is
    // so near that only an index file has room, and it is none. REQUIRES: open() has succeeded, no
    // file is open, !failed().
    Task<Result<void>> begin_file(TapeFileKind kind, std::uint64_t file_id, WallTime now);
    // Writes a member. Its checksum is computed from the source's. The source must live until the
    // call has ended. kNoSpace: the tape ends here, the file is abandoned. kCorrupt: the bytes do
    // not agree with their checksums; the file is abandoned. Errors of the source are passed on.
    Task<Result<TapeEntry>> add(Member member, MemberSource* source);
    // kNoSpace: as add().
    Task<Result<TapeFile>> end_file();
    // Gives up the open file.
    void abandon();

    // Makes all complete files durable. After a failure all files since the last success are in
    // doubt, and failed() is true.
    Task<Result<void>> sync();

    // Behind the last complete file.
    const TapeEnd& end() const { return end_; }
    // Behind the last file that a successful sync() has covered.
    const TapeEnd& durable_end() const { return durable_end_; }
    bool file_open() const { return state_ == State::kFile; }
    // True after an error of the drive: all files since the last sync() are in doubt. The writer
    // must be opened again, at the end that a recovery behind durable_end() finds: some may be
    // complete.
    bool failed() const { return state_ == State::kFailed; }
    const TapeIdentity& identity() const { return identity_; }

private:
    enum class State : std::uint8_t { kClosed, kReady, kFile, kFailed };

    Task<Result<void>> check_end(TapeEnd end);
    Result<void> wrote(const Result<devices::TapeRoom>& room);
    Task<Result<void>> write_block(core::Buffer block);
    Task<Result<void>> write_mark();
    Task<Result<void>> write_labels(FileLabels::Side side);
    Task<Result<void>> append(std::span<const std::byte> bytes);
    Task<Result<void>> append_zeros(std::uint64_t count);
    Task<Result<void>> flush_block();
    Task<Result<std::uint32_t>> digest(std::uint64_t blocks, MemberSource* source);
    Task<Result<std::uint32_t>> copy_bytes(std::uint64_t size_bytes, MemberSource* source);
    Task<Result<std::uint32_t>> copy_checksums(std::uint64_t blocks, MemberSource* source);
    Task<Result<TapeEntry>> add_parts(Member member, MemberSource* source);
    Task<Result<void>> write_end();
    std::uint64_t position() const { return full_blocks_ * kTapeDataBytes + filled_bytes_; }
    std::unexpected<Error> give_up(Error error);
    std::unexpected<Error> fail(Error error);

    devices::TapeDrive& drive_;
    TapeIdentity identity_;
    TapeSite site_;
    AlignedMemory memory_;  // One block.
    AlignedMemory label_;   // A label is written from here.
    State state_ = State::kClosed;
    bool at_end_ = false;       // The tape is at end_.block.
    bool near_end_ = false;     // The last write reported it.
    bool end_is_near_ = false;  // The last write before end_.block reported it.
    TapeEnd end_;
    TapeEnd durable_end_;

    // The open file.
    FileLabels labels_;
    TapeFile file_;
    std::uint64_t ordinal_ = 0;  // The ordinal of the next member.
    std::uint64_t full_blocks_ = 0;
    std::size_t filled_bytes_ = 0;

    static constexpr std::size_t kChecksumsAtATime = 512;
    std::array<std::uint32_t, kChecksumsAtATime> checksums_;
    std::array<char, kChecksumsAtATime * kChecksumLineBytes> lines_;
};

}  // namespace fopd::store

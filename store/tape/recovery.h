#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "core/task.h"
#include "devices/tape/tape_drive.h"
#include "store/tape/cartridge.h"
#include "store/tape/tape_file.h"
#include "store/tape/tape_index.h"
#include "store/tape/tape_reader.h"

namespace fopd::store {

// Receives the copies and the damage that a recovery finds.
class RecoverySink {
public:
    virtual ~RecoverySink() = default;

    // A copy in a complete file. May be called more than once for the same copy.
    virtual Task<Result<void>> found(TapeEntry entry) = 0;
    // A file that cannot be read, or is not as it was written. The copies in it are not found.
    virtual Task<Result<void>> damaged(std::uint64_t file_number, Error error) = 0;
};

struct Recovered {
    // Less than the catalogue knows: nothing was adopted, and nothing must be written. `end` is the
    // catalogue's then.
    bool shorter = false;
    TapeEnd end{};                 // Where the next file goes.
    bool had_incomplete = false;   // There is an incomplete file behind the end.
    std::uint64_t files_read = 0;  // Files not listed by an index: their headers were read.
};

// Finds out what is on a cartridge that its catalogue knows only in part, or not at all. Writes
// nothing. Lives on the drive's reactor, and uses the drive alone while run() runs.
class TapeRecovery {
public:
    // No tape file of objects has more members. They are in memory until the file has turned out to
    // be complete, so one that has more counts as damaged.
    static constexpr std::size_t kFileMembersMax = 10'000;

    // The drive outlives the recovery. The identity is the expected one, or, without a catalogue,
    // the one that inspect() has found.
    TapeRecovery(devices::TapeDrive& drive, TapeIdentity identity)
        : drive_(drive), identity_(identity), blocks_(drive_), reader_(drive_, identity_) {}

    // Gives the sink all copies in complete files behind `known`; TapeEnd() gives those in all
    // files. For all of them the last index files are read, and headers only behind them, or where
    // no index can be read. A file whose trailer is missing is incomplete. kInvalid: it is another
    // cartridge. kCorrupt: the files cannot be counted, or those that are known are not there.
    // The sink must live until the call has ended.
    Task<Result<Recovered>> run(TapeEnd known, RecoverySink* sink);

private:
    Task<Result<void>> count_files();
    Task<Result<void>> check_last();
    Task<Result<IndexPosition>> find_index();
    Task<Result<TapeEnd>> read_indexes(RecoverySink* sink);
    Task<Result<IndexHead>> read_index(IndexPosition position, RecoverySink* sink);
    Task<Result<void>> read_part();
    Task<Result<void>> take_lines(RecoverySink* sink);
    Task<Result<void>> read_files(TapeEnd from, RecoverySink* sink);
    Task<Result<TapeEnd>> read_file(TapeEnd before, RecoverySink* sink);
    Task<Result<TapeEnd>> skip_file(TapeEnd before);

    devices::TapeDrive& drive_;
    TapeIdentity identity_;
    BlockReader blocks_;
    TapeReader reader_;
    Recovered result_;
    FileLabels last_;  // The trailer of the last complete file, if there is one.
    IndexLines lines_;
    std::string part_;  // Of an index.
};

// The identity in a cartridge's own label and first file, for where no catalogue is left. kInvalid:
// no program of this project wrote the cartridge. kNotFound: there is no file yet. REQUIRES: a tape
// is loaded. The drive must live until the call has ended.
Task<Result<TapeIdentity>> read_identity(devices::TapeDrive* drive);

}  // namespace fopd::store

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "store/entry_reader.h"
#include "store/log_visitor.h"
#include "store/superblock.h"

namespace fopd::store {

struct ReplayOptions {
    // The index has applied the entries up to this one, so replay begins after it. 0: replay
    // everything.
    std::uint64_t applied_seq = 0;
    // The entries up to this one were flushed, as a source other than log and index knows (the
    // names). 0: there is no such source.
    std::uint64_t flushed_seq = 0;
    enum class Mode : std::uint8_t { kServe, kReadOnly } mode = Mode::kServe;
};

// The entries that are missing or damaged. None if first_seq is 0.
struct LogDamage {
    std::uint64_t first_seq = 0;
    std::uint64_t last_seq = 0;
};

// Finds the entries of a log after a start. The chain begins with the first entry of a segment
// whose beginning is known. The next entry has the next number and follows the last one, or is at
// the beginning of the next segment if it did not fit. The chain ends where there is no such entry.
//
// The trusted point is the highest entry known to be flushed: by the superblock, by the marks in
// the chain, or because the index has applied it.
//
// 1. If the chain ends before the trusted point, acknowledged commits may be lost: damage.
// 2. Also damage: behind the end there is a whole entry of this epoch whose mark is not less than
//    the end. With a lower mark, that entry was only written out of order before a crash.
// 3. Above the trusted point an entry counts only if its data are whole too. The first one that
//    does not count ends the log, and nothing behind it counts.
// 4. Up to the trusted point data are not checked: their blocks may have been freed and reused.
//
// An example for 2 and 3: entries 7, 8 and 9 are in flight, with mark 6, when the power fails; 8 is
// lost. The chain ends at 7, and 9 with mark 6 is no damage. If the data of 7 are incomplete, the
// log ends at 6.
//
// An entry belongs to the chain only if its epoch fits: from Superblock::epoch_first_seq on it is
// the superblock's, before that an earlier one, and never less than that of the entry before. So
// entries that an earlier epoch left behind its end, or that remain in a reused segment, are not
// taken for entries of this log.
class LogReplay {
public:
    struct Outcome {
        std::uint64_t last_seq = 0;
        std::uint64_t trusted_seq = 0;
        std::vector<LogSegment> segments;  // With the first entries that were found.
        std::size_t head = 0;              // The log continues in segments[head]
        std::uint32_t head_block = 0;      // after these blocks.
        LogDamage damage;
        const char* damage_reason = nullptr;
    };

    // All arguments outlive the replay.
    LogReplay(core::Reactor& reactor, EntryReader& reader, const Superblock& superblock,
              const ReplayOptions& options);

    // Once. Calls the visitor only if there is no damage, or if the log is only read. kInvalid: the
    // index has not applied the entries before the oldest one of the log.
    Task<Result<Outcome>> run(ReplayVisitor* visitor);

private:
    struct Cursor {
        std::size_t index = 0;  // In segments_.
        std::uint32_t block = 0;
        std::uint64_t seq = 0;    // The next entry.
        std::uint64_t epoch = 0;  // The epoch of the last entry.
    };
    struct Scanned {
        bool any = false;  // Whether a later entry, of this epoch or a newer one, was found.
        std::uint64_t flushed_seq = 0;
        bool later_epoch = false;
    };

    LogPosition position(const Cursor& at) const {
        return {.segment = segments_[at.index].number, .block = at.block};
    }
    bool continues(const EntryHeader& header) const;
    void choose_start();
    Task<Result<std::optional<EntryReader::Found>>> step();
    Task<Result<void>> find_end();
    Task<Result<void>> look_behind_end();
    Task<Result<Scanned>> scan_segment(std::size_t index, std::uint32_t from_block);
    Task<Result<void>> deliver(ReplayVisitor* visitor);
    Task<Result<bool>> deliver_one(ReplayVisitor* visitor, EntryReader::Found found) const;
    void note_damage(std::uint64_t last_seq, const char* reason);
    Outcome outcome() const;

    core::Reactor& reactor_;
    EntryReader& reader_;
    const Superblock& superblock_;
    const ReplayOptions options_;
    std::vector<LogSegment> segments_;
    Cursor start_;
    Cursor cursor_;
    std::uint64_t recorded_seq_;  // The newest entry that was flushed, according to the log.
    std::uint64_t trusted_seq_ = 0;
    LogDamage damage_;
    const char* damage_reason_ = nullptr;
};

}  // namespace fopd::store

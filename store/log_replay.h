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
    // The index holds everything up to this entry, so replay begins behind it. 0: it holds nothing,
    // and everything is replayed.
    std::uint64_t applied_seq = 0;
    // Everything up to this entry was flushed, as a source other than log and index knows. 0: there
    // is no such source.
    std::uint64_t flushed_seq = 0;
    enum class Mode : std::uint8_t { kServe, kReadOnly } mode = Mode::kServe;
};

// Entries that should be there and are not whole. Empty when first_seq is 0.
struct LogDamage {
    std::uint64_t first_seq = 0;
    std::uint64_t last_seq = 0;
};

// Finds out what a log holds. The chain: the first entry of a segment whose beginning is known,
// then always the one with the next number, which stands behind the last or, where it did not fit,
// at the beginning of the next segment. It ends where there is no such entry.
//
// The trusted point is the highest of the superblock's, the marks in the chain and what the index
// applied: up to it everything had been flushed. So:
// 1. A chain that ends before the trusted point lost something that was acknowledged, maybe.
// 2. So did one behind whose end lies a whole entry of this epoch that says so: its mark is not
//    below the end. One with a lower mark was merely written out of order when the power went.
// 3. Above the trusted point an entry counts only if its data are whole as well; the first that
//    does not count ends the log, for what is behind it was written later.
// 4. Up to it data are not looked at: their blocks may have been freed since, and used again.
//
// An entry is in the chain only if its epoch is right: from Superblock::epoch_first_seq on that of
// the superblock, before it an earlier one, never one before that of the entry before it. What an
// earlier epoch left behind its end, or an earlier round left in a segment, is thus no entry.
class LogReplay {
public:
    struct Outcome {
        std::uint64_t last_seq = 0;
        std::uint64_t trusted_seq = 0;
        std::vector<LogSegment> segments;  // With what is in them.
        std::size_t head = 0;              // The log goes on in segments[head]
        std::uint32_t head_block = 0;      // behind these blocks.
        LogDamage damage;
        const char* damage_reason = nullptr;
    };

    // All outlive it.
    LogReplay(core::Reactor& reactor, EntryReader& reader, const Superblock& superblock,
              const ReplayOptions& options);

    // Calls the visitor only when there is no damage, or to read only. Once. kInvalid: the index is
    // older than the tail.
    Task<Result<Outcome>> run(ReplayVisitor* visitor);

private:
    struct Cursor {
        std::size_t index = 0;  // In segments_.
        std::uint32_t block = 0;
        std::uint64_t seq = 0;    // That comes next.
        std::uint64_t epoch = 0;  // Of the last.
    };
    struct Scanned {
        bool any = false;  // A later entry of this epoch or one to come.
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
    std::uint64_t recorded_seq_;  // What the log itself says was flushed.
    std::uint64_t trusted_seq_ = 0;
    LogDamage damage_;
    const char* damage_reason_ = nullptr;
};

}  // namespace fopd::store

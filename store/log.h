#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "core/cancel.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "devices/device.h"
#include "store/aligned_memory.h"
#include "store/commit_path.h"
#include "store/entry_reader.h"
#include "store/hole_filler.h"
#include "store/log_options.h"
#include "store/log_replay.h"
#include "store/log_visitor.h"
#include "store/segment_source.h"
#include "store/superblock_copies.h"

namespace fopd::store {

// The result of Log::open(): the contents of the log.
struct Replayed {
    std::uint64_t last_seq = 0;     // The log continues behind this entry.
    std::uint64_t trusted_seq = 0;  // The data of the entries up to this one were not checked.
    bool clean = false;             // The log had been closed: nothing that was begun is lost.
    std::uint32_t schema_version = 0;
};

struct LogSpaceFigures {
    std::uint32_t segments = 0;
    // How many of them were not written since they were last emptied.
    std::uint32_t segments_free = 0;
    std::uint32_t segments_max = 0;
};

// The log of one disk: the commit point of everything on it, and the truth from which the index can
// be rebuilt. Its entries, which hold records, are numbered without gaps over its whole life and
// lie in segments of the disk; a superblock lists the segments in their order. The log does not
// interpret records.
//
// A commit: reserve(), at any time; then in ONE turn start the writes of the data and begin(); then
// data_done() when these writes have ended, and durable(). Commits of one turn, and those that
// arrive while an entry is in flight, for a while, share an entry. An entry is complete when it is
// written and all data of its commits are; one flush at a time makes the longest complete prefix
// durable. CommitPath has these functions; Log adds the upkeep: opening, superblocks, growth and
// cleaning.
//
// After a failed write or flush it is unknown what has become durable: every commit that was not
// durable, and every later one, fails with kIo, and the log writes no more. It does not retry.
//
// **Reuse:** a block that a record of entry s freed may be overwritten or discarded only once
// s <= trusted(). That s is durable is not enough: until a durable mark says so, a recovery checks
// the data of the entries around s, finds the old record's data overwritten, and ends the log
// before s.
//
// Lives on one reactor. begin() and data_done() allocate no memory.
class Log final : public CommitPath {
public:
    // The first block of segment 0; segment n begins n * segment_blocks behind it.
    static constexpr std::uint64_t kSegmentsBlock = 256;
    static constexpr std::uint32_t kSegmentsMin = 4;
    static constexpr std::uint32_t kSegmentsMax = 5'000;  // A superblock can list so many.
    // How many segments a disk has.
    static std::uint32_t segments_on(const devices::Geometry& geometry,
                                     std::uint32_t segment_blocks);

    // All of them outlive the log. `background` is the same device, for reads that nobody waits
    // for; null: `device`.
    Log(core::Reactor& reactor, devices::Device& device, SegmentSource& source,
        const LogOptions& options, devices::Device* background = nullptr);

    // Makes an empty log of these segments, at least kSegmentsMin. REQUIRES: the disk's id is new;
    // otherwise entries of an earlier log could be taken for entries of this one. After a crash the
    // disk has no superblock, or one that open() accepts or refuses; call it again.
    Task<Result<void>> format(std::vector<std::uint32_t> segments);

    // Replays the log and, to serve, begins a new epoch. Once. kNotFound: there is no superblock;
    // kDenied: it is another disk's; kUnsupported: newer than this program; kCorrupt: no whole
    // superblock, or entries that were flushed are missing: damage() names them. An index ahead of
    // the log, i.e. an older copy of the disk, is kCorrupt too. To serve, the visitor is called
    // only after all these checks; read-only, it gets the entries before the damage, which is no
    // error then. Writes to the disk only to serve.
    Task<Result<Replayed>> open(ReplayVisitor* visitor, ReplayOptions options);
    const LogDamage& damage() const { return damage_; }

    // Refuses new reservations, waits until everything begun is durable, and records in the
    // superblock that nothing is missing. Coroutines that wait for room or for cleaning get
    // kClosed. Needed after open() and format() in every case. REQUIRES: no reservation is held.
    Task<Result<void>> close();

    // Reads superblocks and entries again, from the oldest entry to those that are durable when it
    // begins, while the log continues. Entries that are cleaned away meanwhile are not reported.
    // kNoSpace: there is no memory. One at a time.
    Task<Result<void>> look_through(LogVisitor* visitor, core::WaitOptions wait);

    // The last entry of an earlier epoch: commits of that epoch in later entries are lost. None:
    // the epoch is too long ago to be known.
    std::optional<std::uint64_t> last_seq_of(std::uint64_t epoch) const;

    // -- space --

    // The index holds everything up to this entry durably, so cleaning may free it.
    void set_applied(std::uint64_t seq);
    void set_segments_max(std::uint32_t count);
    // How many bytes the live records take in the index. Once this has fallen by enough that
    // cleaning is worth it, a log that cleaning could not help before is cleaned again.
    void set_live_bytes(std::uint64_t bytes);
    // The index cannot apply more of the log for now: until unstall(), reserve() returns `why`
    // where it would wait, unless the oldest segment can be cleaned nevertheless.
    void stall(const Error& why);
    void unstall() { stalled_.reset(); }
    // The numbers of the log's segments in their order; the volume's allocator must not use them.
    std::vector<std::uint32_t> segments() const;
    LogSpaceFigures space() const;

    // Everything that was in the log has been cleaned, nothing was begun since, and there is no
    // room for commits that add.
    bool is_full() const { return rounds_.is_full(); }
    // Little room is free, growth did not help, and cleaning would.
    bool cleaning_wanted() const;
    Task<Result<void>> wait_cleaning_wanted(core::WaitOptions wait);
    // Empties the oldest segment. kBusy: the index does not hold all of it, or it is being written.
    // kNoSpace: there is no room for its live records. kCorrupt: see damage(). One at a time.
    Task<Result<void>> clean(CleanVisitor* visitor);

private:
    // A superblock is written at the latest when the log has entered so many segments: replay
    // looks for its beginning through no more.
    static constexpr std::uint32_t kEnteredMax = 16;
    static constexpr std::uint32_t kZeroBlocks = 64;  // Written at a time.

    // -- for CommitPath: log_growth.cc --
    std::optional<Error> make_room(RoomWanted wanted) override;
    void segment_entered() override;
    void path_failed() override { cleaning_.wake_all(); }

    // -- opening, superblocks: log.cc --
    EntryReader::Options reader_options() const;
    bool is_entry(const std::optional<EntryReader::Found>& found, std::uint64_t seq,
                  std::uint64_t epoch_min) const;
    Result<void> check(const Superblock& superblock) const;
    void take_over(const Superblock& superblock, LogReplay::Outcome outcome);
    Task<Result<void>> begin_epoch();
    Task<Result<void>> clear_next_blocks();
    Task<Result<void>> clear_block(LogPosition position);
    Task<Result<void>> write_last_superblock();
    Superblock current_superblock() const;
    Task<Result<void>> write_superblock(Superblock superblock);
    Task<void> lock_superblock();
    void unlock_superblock();

    // -- growth: log_growth.cc; zeros ahead of the log: log_zeros.cc --
    std::optional<Error> why_no_room(Purpose purpose) const;
    void look_after_space();
    Task<void> look_after_space_until_done();
    bool growth_due() const;
    bool shrinking_due() const;
    bool superblock_due() const { return entered_since_superblock_ >= kEnteredMax; }
    void ask_source_again() { source_empty_ = source_dry_ = false; }
    Task<Result<void>> grow();
    Task<Result<void>> shrink();
    Task<Result<void>> zero_segment(std::uint32_t segment);
    Task<void> fill_head();
    std::optional<std::size_t> segment_to_fill() const;
    void fill_ahead();
    Task<void> fill_ahead_until_done();

    // -- cleaning: log_cleaning.cc --
    bool is_oldest_applied() const;
    Task<Result<std::optional<EntryReader::Found>>> read_to_clean(EntryReader* reader,
                                                                  LogPosition at);
    Task<Result<void>> hand_out_oldest(CleanVisitor* visitor, std::uint64_t end_seq);
    bool is_cleaned_note_due() const;
    Task<Result<void>> note_cleaned(std::uint64_t seq);
    Task<Result<void>> drop_oldest();

    // -- looking through the log: log_look.cc --
    struct Stretch {
        LogSegment segment;
        std::uint64_t last_seq = 0;
    };
    Task<void> look_at_superblocks(LogVisitor* visitor);
    Task<Result<void>> look_at_segment(LogVisitor* visitor, EntryReader* reader, Stretch stretch);
    std::optional<Stretch> stretch_with(std::uint64_t seq, std::uint64_t end_seq) const;
    bool has(const LogSegment& segment) const;
    std::uint64_t block_of(LogPosition at) const;

    devices::Device& background_;
    SegmentSource& source_;
    SuperblockCopies copies_;
    AlignedMemory zeros_;
    HoleFiller filler_;
    std::set<std::uint32_t> filled_;  // Segments whose blocks were all written at least once.
    bool filling_ = false;

    std::uint64_t generation_ = 0;
    std::uint64_t epoch_first_seq_ = 0;
    EarlierFirstSeqs earlier_first_seqs_{};
    std::uint64_t applied_ = 0;
    // While cleaning reads in the background: cancelled when a reservation begins to wait for
    // space.
    std::optional<core::CancelSource> background_read_;
    std::uint64_t cleaned_seq_ = 0;     // See Superblock.
    std::uint64_t noted_capacity_ = 0;  // When cleaned_seq_ was written last.
    std::uint32_t segments_max_;
    std::uint32_t entered_since_superblock_ = 0;
    bool superblock_locked_ = false;
    bool upkeep_runs_ = false;
    bool source_empty_ = false;     // The source has no segment for more room.
    bool source_dry_ = false;       // The source has no segment for a log that is stuck.
    std::optional<Error> stalled_;  // Why the index cannot apply more of the log.
    core::WaitQueue superblock_free_;
    core::WaitQueue cleaning_;
    LogDamage damage_;
};

}  // namespace fopd::store

#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/intrusive_list.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "devices/device.h"
#include "store/purpose.h"
#include "store/schema.h"

namespace fopd::store {

class LogCore;

// For more room, or because nothing can be freed or cleaned without it.
enum class SegmentNeed : std::uint8_t { kMore, kToGoOn };

// Owns the segments that do not belong to the log. Called on the log's reactor, never from within
// begin(), data_done() or reserve().
class SegmentSource {
public:
    virtual ~SegmentSource() = default;
    // A segment that nothing recorded names any more, up to Log::trusted(); the log may overwrite
    // it at once. kNoSpace when there is none for that need.
    virtual Result<std::uint32_t> take_segment(SegmentNeed need) = 0;
    // No superblock names it any more.
    virtual void give_back_segment(std::uint32_t segment) = 0;
};

// What was committed together, as it was read back. Borrowed until the task it was handed to ends.
struct LogEntry {
    std::uint64_t epoch = 0;
    std::uint64_t seq = 0;
    std::uint32_t record_count = 0;
    std::span<const std::byte> payload{};
};

// Takes what a log holds when it is opened, in order.
class ReplayVisitor {
public:
    virtual ~ReplayVisitor() = default;
    // Whether the data that the entry's records name are what the records say; false ends the log
    // before this entry. Asked only about entries that may not have been flushed when the log was
    // last written, right before replay() of the same.
    virtual Task<Result<bool>> data_ok(LogEntry entry) = 0;
    virtual Task<Result<void>> replay(LogEntry entry) = 0;
};

// Takes the oldest entries, which are about to go.
class CleanVisitor {
public:
    virtual ~CleanVisitor() = default;
    // Commits again what is still of use, in short commits that together have no more bytes than
    // the entry, from reservations for cleaning; it need not wait until they are durable. What is
    // of use is decided in the turn of its begin(), and in the light of everything that was begun
    // before, durable or not: in a replay the later record wins.
    virtual Task<Result<void>> keep(LogEntry entry) = 0;
};

// What a look through a log came upon.
struct LogFault {
    const char* reason = "";
    std::uint64_t first_seq = 0;  // Of entries; 0: it is no entry.
    std::uint64_t last_seq = 0;
    std::uint64_t block = 0;  // Of the disk.
};

// Takes what a look through a log that is in use comes upon.
class LogVisitor {
public:
    virtual ~LogVisitor() = default;
    // An entry that is whole, and where it is; an error ends the look. It may take its time.
    virtual Task<Result<void>> entry(LogEntry entry, std::uint64_t block) = 0;
    virtual void fault(const LogFault& fault) = 0;
};

enum class Durability : std::uint8_t { kDurable, kBuffered };
enum class Data : std::uint8_t { kNone, kPending };

// Says which commit of which life of the log: what a later life does not hold was lost.
struct Receipt {
    std::uint64_t epoch = 0;
    std::uint64_t seq = 0;

    friend bool operator==(const Receipt&, const Receipt&) = default;
};

// A change that becomes durable as a whole. It belongs to who makes it, and stays where it is from
// begin() until durable() has returned; if that is never awaited, until data_done(), if any.
class Commit : public core::ListNode {
public:
    // Since begin(). Entries are durable in the order of their numbers; commits that share an entry
    // share its number, and are durable in the order of their begin().
    std::uint64_t seq() const { return seq_; }

private:
    friend LogCore;
    enum class Stage : std::uint8_t { kIdle, kBegun, kEnded };

    std::uint64_t seq_ = 0;
    std::coroutine_handle<> waiter_;
    Error error_{.code = Errc::kIo};
    Stage stage_ = Stage::kIdle;
    bool data_pending_ = false;
    bool failed_ = false;
};

// Room for one commit of so many bytes, in the log and in memory. Given up on destruction. It does
// not outlive its log.
class Reservation {
public:
    Reservation(Reservation&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)),
          bytes_(other.bytes_),
          purpose_(other.purpose_) {}
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation() {
        if (core_ != nullptr) give_up();
    }
    std::uint32_t bytes() const { return bytes_; }

private:
    friend LogCore;
    Reservation(LogCore* core, std::uint32_t bytes, Purpose purpose)
        : core_(core), bytes_(bytes), purpose_(purpose) {}
    void give_up();

    LogCore* core_;
    std::uint32_t bytes_;
    Purpose purpose_;
};

struct LogOptions {
    std::array<std::byte, 16> disk_id{};
    Schema schema = kSchema;  // Of what is in the entries; a newer log is not opened.
    std::uint32_t segment_blocks = 256;
    std::uint32_t segments_max = 4;   // How far it grows by itself; see set_segments_max().
    Duration flush_interval = 100ms;  // Until buffered commits are durable, and a mark is written.
    Duration gather_time = 1ms;       // Between two entries, while the first is not durable.
    bool fills_holes = true;          // Before it comes to them, on disks that gain by it.
    std::uint32_t entry_blocks_max = 64;      // 256 KiB.
    std::uint32_t entries_in_flight_max = 3;  // Closed and not durable, while nothing is full.
};

struct ReplayOptions {
    // Replay begins behind it: what the index holds. 0: everything, from the tail.
    std::uint64_t applied_seq = 0;
    // Up to here all was flushed, as others than the index know. 0: nobody does.
    std::uint64_t flushed_seq = 0;
    enum class Mode : std::uint8_t { kServe, kReadOnly } mode = Mode::kServe;
};

struct Replayed {
    std::uint64_t last_seq = 0;     // The log goes on behind it.
    std::uint64_t trusted_seq = 0;  // Up to here no data was asked for.
    bool clean = false;             // It had been closed: nothing that was begun is lost.
    std::uint32_t schema_version = 0;
};

// Entries that should be there and are not whole. Empty when first is 0.
struct LogDamage {
    std::uint64_t first_seq = 0;
    std::uint64_t last_seq = 0;
};

struct LogSpaceFigures {
    std::uint32_t segments = 0;
    std::uint32_t segments_free = 0;  // Of those, not written since they were last emptied.
    std::uint32_t segments_max = 0;
};

// The log of one disk: the commit point of everything on it, and the truth from which the index can
// be rebuilt. Entries of records, numbered without gaps over its whole life, lie in segments of the
// disk; a superblock says which, in which order. It does not know what a record says.
//
// A commit: reserve(), whenever; then in ONE turn start the writes of the data and begin(); then
// data_done() when these have ended, and durable(). Commits of one turn, and those that come while
// an entry is on its way, for a while, share an entry. An entry is complete when it is written and
// all data of its commits are; one flush at a time makes the longest complete prefix durable.
//
// After a failed write or flush nothing is known to become durable any more: every commit that was
// not durable, and every later one, fails with kIo, and the log writes no more. It is not retried.
//
// **Reuse:** a block that a record of entry s freed is overwritten or discarded only once
// s <= trusted(). That s is durable is not enough: until a durable mark says so, a recovery asks
// for the data of the entries around it, and finds the old record's overwritten, which ends the log
// before s.
//
// Lives on one reactor. Begin and data_done allocate nothing.
class Log {
public:
    // What begins where the disk is divided; segment n follows these at n * segment_blocks.
    static constexpr std::uint64_t kSegmentsBlock = 256;
    static constexpr std::uint32_t kSegmentsMin = 4;
    static constexpr std::uint32_t kSegmentsMax = 5'000;  // What a superblock can list.

    // All three outlive the log.
    Log(core::Reactor& reactor, devices::Device& device, SegmentSource& source,
        const LogOptions& options);
    ~Log();
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    // Makes an empty log of these segments, at least kSegmentsMin. Requires: the disk's id is new,
    // or what an earlier log left behind could pass for entries of this one. Interrupted, it leaves
    // nothing, or a superblock that open() takes or refuses: do it again.
    Task<Result<void>> format(std::vector<std::uint32_t> segments);

    // Replays, and begins a new epoch if it is to serve. kNotFound: there is no superblock;
    // kDenied: it is another disk's; kUnsupported: newer than this program; kCorrupt: no whole
    // superblock, or entries that were flushed are missing: damage() names them. An index ahead of
    // the log, i.e. an older copy of the disk, is kCorrupt too. To serve, the visitor sees nothing
    // before all that has been found out; read-only, it is given what lies before the damage, which
    // is no error. Nothing is written unless it serves. Once.
    Task<Result<Replayed>> open(ReplayVisitor* visitor, ReplayOptions options);
    const LogDamage& damage() const;

    // Refuses new reservations, waits for what was begun, makes it durable and says in the
    // superblock that nothing is missing; who waits for room or cleans is told kClosed. Requires:
    // nobody holds a reservation. Needed after open() and format() in every case.
    Task<Result<void>> close();

    // -- commits --

    // Waits until there is room for a commit of so many bytes of records, at most payload_max().
    // First come, first served among those of one purpose. kTimedOut, kCancelled; kIo when the log
    // has failed; kNoSpace for more than payload_max(), and when the log is full: it cannot grow,
    // and cleaning all of it again would gain nothing; kClosed.
    Task<Result<Reservation>> reserve(std::uint32_t bytes, core::WaitOptions wait,
                                      Purpose purpose = Purpose::kAdding);
    std::uint32_t payload_max() const;
    // Of commits that have not begun yet.
    std::uint64_t reserved_bytes() const;

    // The records, copied, are in the log from now on unless it fails. Requires: no more bytes than
    // reserved; at least one.
    void begin(Commit& commit, Reservation reservation, std::span<const std::byte> records,
               std::uint32_t record_count, Durability durability, Data data);
    // Exactly once if begun with Data::kPending. A failure fails the log.
    void data_done(Commit& commit, const Result<void>& result);

    class DurableAwaiter;
    // Result<void>: fine when the commit and all before it are durable. At most once, for a durable
    // commit. It has no deadline: until the device has answered nobody knows what became of it.
    DurableAwaiter durable(Commit& commit);
    // Everything begun so far is durable.
    Task<Result<void>> sync(core::WaitOptions wait);
    // trusted() has reached `seq`, which has been begun. Writes a mark if need be.
    Task<Result<void>> settle(std::uint64_t seq, core::WaitOptions wait);

    // Reads superblocks and entries again, from the tail to what is durable when it begins, while
    // the log goes on: what is cleaned away meanwhile is not missed. kNoSpace: there is no memory.
    // One at a time.
    Task<Result<void>> look_through(LogVisitor* visitor);

    std::uint64_t epoch() const;
    // With which entry an earlier epoch ended: what was begun in it behind that is lost. None: it
    // is too long ago to be known.
    std::optional<std::uint64_t> last_seq_of(std::uint64_t epoch) const;
    Receipt receipt_of(const Commit& commit) const { return {epoch(), commit.seq()}; }
    std::uint64_t begun_seq() const;
    // The newest entry that no later commit will share.
    std::uint64_t closed_seq() const;
    std::uint64_t durable_seq() const;
    // A recovery from here on never asks for the data of the entries up to this one. It follows
    // durable_seq() by a flush, or by the flush interval when the disk falls idle.
    std::uint64_t trusted() const;
    // Why it writes no more; null while it does.
    const Error* failed() const;

    // -- space --

    // The index holds everything up to here, durably: cleaning may go as far.
    void set_applied(std::uint64_t seq);
    void set_segments_max(std::uint32_t count);
    // What the index takes for everything that lives: once it is less by so much that cleaning is
    // worth it, a round that gained nothing is no reason not to try again.
    void set_live_bytes(std::uint64_t bytes);
    // The index will not hold more of the log by itself: until unstall(), reserve() gives `why`
    // where it would wait, unless the oldest segment can be cleaned all the same.
    void stall(const Error& why);
    void unstall();
    // The volume has failed, so nobody cleans any more: from now on reserve() returns `why`, also
    // to the coroutines that wait in it.
    void refuse(const Error& why);
    // In their order; the volume's allocator leaves them alone.
    std::vector<std::uint32_t> segments() const;
    LogSpaceFigures space() const;

    // Everything that was in the log has been cleaned, nothing was begun since, and there is no
    // room for what adds.
    bool is_full() const;
    // Little is free, growing did not help, and cleaning would.
    bool cleaning_wanted() const;
    Task<Result<void>> wait_cleaning_wanted(core::WaitOptions wait);
    // Empties the oldest segment. kBusy: it holds what the index does not, or it is the one being
    // written. kNoSpace: what is of use in it has no room elsewhere. kCorrupt: see damage(). One at
    // a time.
    Task<Result<void>> clean(CleanVisitor* visitor);

private:
    std::unique_ptr<LogCore> core_;
};

// Used by co_await only.
class Log::DurableAwaiter {
public:
    explicit DurableAwaiter(Commit& commit) : commit_(commit) {}
    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> handle);
    [[nodiscard]] Result<void> await_resume() const;

private:
    Commit& commit_;
};

}  // namespace fopd::store

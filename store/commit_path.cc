#include "store/commit_path.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/entry_reader.h"
#include "store/log_entry.h"

namespace fopd::store {

void Reservation::give_up() {
    path_->give_up(*this);
}

Result<void> CommitPath::DurableAwaiter::await_resume() const {
    if (commit_.failed_) return std::unexpected(commit_.error_);
    return {};
}

CommitPath::CommitPath(core::Reactor& reactor, devices::Device& device, const LogOptions& options)
    : Timer(&on_time),
      reactor_(reactor),
      device_(device),
      options_(options),
      space_(
          {.segment_blocks = options.segment_blocks, .entry_blocks_max = options.entry_blocks_max}),
      rounds_(space_),
      payload_max_(static_cast<std::uint32_t>(options.entry_blocks_max * devices::kBlockBytes -
                                              kEntryHeaderBytes)),
      bytes_max_((kEntriesInMemory - options.entries_in_flight_max - 1) * payload_max_ / 2),
      progress_(reactor),
      adding_line_(reactor),
      cutting_line_(reactor),
      freeing_line_(reactor),
      room_(reactor) {
    ENSURE(options.entries_in_flight_max >= 1);
    ENSURE(options.entries_in_flight_max <= kEntriesInMemory / 2);
    reactor.add_poller(*this);
}

// -- opening and closing --

Result<void> CommitPath::allocate_entries() {
    const std::size_t size = options_.entry_blocks_max * devices::kBlockBytes;
    auto memory = AlignedMemory::allocate(kEntriesInMemory * size);
    if (!memory) return std::unexpected(memory.error());
    memory_ = std::move(*memory);
    for (std::size_t i = 0; i < kEntriesInMemory; ++i) {
        entries_[i].buffer = {.data = memory_.span().data() + i * size, .size_bytes = size};
    }
    return {};
}

void CommitPath::continue_behind(std::uint64_t seq) {
    retired_ = complete_ = complete_mark_ = durable_ = trusted_ = closed_ = seq;
    last_records_seq_ = flush_wanted_ = sync_wanted_ = seq;
}

void CommitPath::set_epoch(std::uint64_t epoch, std::uint32_t schema_version) {
    epoch_ = epoch;
    schema_version_ = schema_version;
}

void CommitPath::begin_close() {
    closing_ = true;
    disarm();
    wake_room();
}

Task<void> CommitPath::end_close() {
    co_await gate_.close(reactor_);
    serving_ = false;
}

// -- room --

CommitPath::Line& CommitPath::line_of(Purpose purpose) {
    if (purpose == Purpose::kAdding) return adding_line_;
    return purpose == Purpose::kCutting ? cutting_line_ : freeing_line_;
}

std::uint64_t CommitPath::left_to_others(Purpose purpose) const {
    switch (purpose) {
        case Purpose::kAdding: return space_.cleaning_reserve() + space_.freeing_reserve();
        case Purpose::kCutting: return space_.cleaning_reserve();
        // When another round of cleaning would gain nothing, deletes may use a part of the room for
        // cleaning: cleaning_least() is still enough to clean the segment whose records they end.
        case Purpose::kFreeing:
            return rounds_.is_exhausted() ? space_.cleaning_least() : space_.cleaning_reserve();
        case Purpose::kCleaning: break;
    }
    return 0;
}

bool CommitPath::has_room(std::uint32_t bytes, Purpose purpose) const {
    const std::uint64_t bytes_left_over = purpose == Purpose::kCleaning ? 0 : payload_max_;
    if (reserved_bytes_ + in_use_bytes_ + bytes + bytes_left_over > bytes_max_) return false;
    return space_.fits(entry_blocks(bytes), left_to_others(purpose));
}

Task<Result<Reservation>> CommitPath::reserve(std::uint32_t bytes, core::WaitOptions wait,
                                              Purpose purpose) {
    if (bytes > payload_max_) {
        co_return std::unexpected(
            Error{.code = Errc::kNoSpace, .context = "more records than an entry takes"});
    }
    const bool in_line = purpose != Purpose::kCleaning;
    Line& line = line_of(purpose);
    if (in_line && line.has_first) {
        const auto turn = co_await line.others.wait(wait);
        if (!turn) co_return std::unexpected(turn.error());
    }
    if (in_line) line.has_first = true;
    const auto found = co_await wait_for_room(bytes, wait, purpose);
    if (in_line && !line.others.wake_one()) line.has_first = false;
    if (!found) co_return std::unexpected(found.error());
    reserved_bytes_ += bytes;
    space_.promise(entry_blocks(bytes));
    co_return Reservation(this, bytes, purpose);
}

Task<Result<void>> CommitPath::wait_for_room(std::uint32_t bytes, core::WaitOptions wait,
                                             Purpose purpose) {
    for (bool is_first = true;; is_first = false) {
        if (failed_) co_return std::unexpected(*failed_);
        if (!serving_ || closing_) co_return std::unexpected(closed_error());
        if (refused_) co_return std::unexpected(*refused_);
        if (has_room(bytes, purpose)) co_return Result<void>{};
        const bool must_go_on = purpose == Purpose::kCleaning ||
                                (purpose == Purpose::kFreeing && rounds_.is_exhausted());
        const bool lacks_space = !space_.fits(entry_blocks(bytes), left_to_others(purpose));
        const bool is_stuck = must_go_on && lacks_space;
        const bool needs_cleaning = lacks_space && purpose != Purpose::kCleaning;
        const bool frees = purpose == Purpose::kFreeing || purpose == Purpose::kCutting;
        if (frees) ++waiting_to_free_;
        if (needs_cleaning) ++waiting_for_space_;
        has_stuck_ = has_stuck_ || is_stuck;
        const std::optional<Error> why_not = make_room({.purpose = purpose, .is_first = is_first});
        Result<void> woken{};
        if (!why_not) woken = co_await room_.wait(wait);
        if (frees) --waiting_to_free_;
        if (needs_cleaning) --waiting_for_space_;
        if (is_stuck && (why_not || !woken)) wake_room();
        if (why_not) co_return std::unexpected(*why_not);
        if (!woken && !has_room(bytes, purpose)) co_return std::unexpected(woken.error());
    }
}

void CommitPath::refuse(const Error& why) {
    refused_ = why;
    wake_room();
}

void CommitPath::give_up(const Reservation& reservation) {
    reserved_bytes_ -= reservation.bytes_;
    space_.release(entry_blocks(reservation.bytes_));
    wake_room();
}

// -- from commits to entries --

void CommitPath::begin(Commit& commit, Reservation reservation, std::span<const std::byte> records,
                       std::uint32_t record_count, Durability durability, Data data) {
    ENSURE(!records.empty());
    ENSURE(record_count > 0);
    add(commit, std::move(reservation), records, record_count, durability, data);
}

// Adds a commit, or a mark, which has no records, to the gathering entry.
void CommitPath::add(Commit& commit, Reservation reservation, std::span<const std::byte> records,
                     std::uint32_t record_count, Durability durability, Data data) {
    ENSURE(reservation.path_ == this);
    ENSURE(records.size() <= reservation.bytes_);
    ENSURE(commit.stage_ == Commit::Stage::kIdle);
    const auto size = static_cast<std::uint32_t>(records.size());
    commit.data_pending_ = data == Data::kPending;
    if (failed_) return begin_failed(commit);  // The reservation is given up.

    const bool cleans = reservation.purpose_ == Purpose::kCleaning;
    if (!fits_into_gathering(size, cleans)) spawn(write_entry(close_entry()));
    EntryState& entry = gathering();
    reservation.path_ = nullptr;
    reserved_bytes_ -= reservation.bytes_;
    in_use_bytes_ += size;
    // Gives promised blocks that this commit does not need back, for other commits.
    const std::uint32_t had_blocks = entry.commit_count > 0 ? entry_blocks(entry.payload_bytes) : 0;
    const std::uint32_t spare_blocks =
        had_blocks + entry_blocks(reservation.bytes_) - entry_blocks(entry.payload_bytes + size);
    space_.release(spare_blocks);
    if (spare_blocks > 0) wake_room();
    if (size > 0) {
        std::memcpy(entry.buffer.data + kEntryHeaderBytes + entry.payload_bytes, records.data(),
                    size);
        entry.payload_bytes += size;
        last_records_seq_ = closed_ + 1;
    }
    entry.record_count += record_count;
    ++entry.commit_count;
    if (commit.data_pending_) ++entry.data_pending;
    commit.seq_ = closed_ + 1;
    commit.stage_ = Commit::Stage::kBegun;
    if (durability == Durability::kDurable) {
        waiting_.push_back(commit);
        entry.wants_flush = true;
    } else {
        arm_timer();
    }
    // A mark has no records that could be live, so cleaning gains nothing by it.
    if (!cleans) rounds_.note_commit(size > 0 ? entry_blocks(size) : 0);
    if (!cleans || durability == Durability::kDurable) leave_soon();
}

// Commits of cleaning fill a segment to its end: an entry that would become too long for the rest
// of the segment is closed, and the next entry begins the next segment. Such an entry may be short,
// so it is limited by entries_in_flight_max: there is memory for few short entries.
bool CommitPath::fits_into_gathering(std::uint32_t size, bool cleans) const {
    const EntryState& entry = gathering();
    const std::uint32_t together = entry.payload_bytes + size;
    if (together > payload_max_) return false;
    if (!cleans || entry.commit_count == 0) return true;
    if (in_flight() >= options_.entries_in_flight_max) return true;
    return space_.stays_in_segment(entry_blocks(together)) ||
           !space_.stays_in_segment(entry_blocks(entry.payload_bytes));
}

void CommitPath::begin_failed(Commit& commit) {
    commit.seq_ = closed_ + 1;
    commit.failed_ = true;
    commit.error_ = *failed_;
    end(commit);
}

bool CommitPath::may_close() const {
    if (failed_ || !gathering().leaves_soon) return false;
    return in_flight() < options_.entries_in_flight_max;
}

Instant CommitPath::close_at() const {
    return in_flight() == 0 ? closed_at_ : after(closed_at_, options_.gather_time);
}

// Closes the entry at the end of this turn if it is time. Otherwise, or if the end of this turn has
// passed already, the timer makes another turn.
void CommitPath::close_soon() {
    if (may_close()) reactor_.arm(close_timer_, close_at());
}

void CommitPath::leave_soon() {
    gathering().leaves_soon = gathering().commit_count > 0;
    close_soon();
}

// Writes the commits of this turn together with their data.
void CommitPath::end_of_turn() {
    while (may_close() && close_at() <= reactor_.now()) {
        reactor_.start(gate_, write_entry(close_entry()));
    }
}

// Chooses the position of the gathering entry and completes its bytes; the next one begins to
// gather.
std::uint64_t CommitPath::close_entry() {
    EntryState& entry = gathering();
    const std::uint64_t seq = closed_ + 1;
    const std::uint32_t blocks = entry_blocks(entry.payload_bytes);
    const LogSpace::Taken taken = space_.take({.seq = seq, .blocks = blocks});
    entry.offset = byte_offset(taken.position, options_.segment_blocks);
    entry.mark = durable_;
    seal_entry(entry.buffer.span().first(blocks * devices::kBlockBytes), options_.disk_id,
               {.epoch = epoch_,
                .seq = seq,
                .mark = entry.mark,
                .payload_bytes = entry.payload_bytes,
                .record_count = entry.record_count,
                .schema_version = schema_version_});
    closed_ = seq;
    closed_at_ = reactor_.now();
    close_timer_.disarm();
    ENSURE(closed_ + 1 - retired_ <= kEntriesInMemory);
    gathering() = EntryState{.buffer = gathering().buffer};
    if (taken.new_segment) segment_entered();
    return seq;
}

Task<void> CommitPath::write_entry(std::uint64_t seq) {
    EntryState& entry = entry_of(seq);
    core::Buffer bytes = entry.buffer;
    bytes.size_bytes = entry_blocks(entry.payload_bytes) * devices::kBlockBytes;
    const auto written = co_await device_.write(bytes, entry.offset);
    if (!written) {
        fail(written.error(), "write to the log");
        co_return;
    }
    entry.written = true;
    advance();
    if (flushing_ || !flush_due()) co_return;
    flushing_ = true;  // At once, without another turn.
    co_await flush_while_due();
}

void CommitPath::data_done(Commit& commit, const Result<void>& result) {
    ENSURE(commit.data_pending_);
    commit.data_pending_ = false;
    if (failed_) return;
    if (!result) return fail(result.error(), "write of data");
    ENSURE(commit.seq_ > complete_);
    EntryState& entry = entry_of(commit.seq_);
    ENSURE(entry.data_pending > 0);
    --entry.data_pending;
    if (entry.data_pending > 0 || !entry.written) return;
    advance();
    start_flusher();
}

// -- from entries to durability --

void CommitPath::advance() {
    while (complete_ < closed_) {
        const EntryState& entry = entry_of(complete_ + 1);
        if (!entry.written || entry.data_pending > 0) break;
        ++complete_;
        complete_mark_ = entry.mark;
        if (entry.wants_flush) flush_wanted_ = complete_;
    }
    retire();
}

void CommitPath::retire() {
    const std::uint64_t before = retired_;
    while (retired_ < complete_) {
        const EntryState& entry = entry_of(retired_ + 1);
        if (entry.wants_flush && retired_ + 1 > durable_) break;
        ++retired_;
        in_use_bytes_ -= entry.payload_bytes;
    }
    if (retired_ == before) return;
    wake_room();
    close_soon();
}

bool CommitPath::flush_due() const {
    if (failed_) return false;
    if (flush_wanted_ > durable_ || flush_tickets_ > flush_tickets_done_) return true;
    return sync_wanted_ > durable_ && complete_ >= sync_wanted_;
}

Task<void> CommitPath::flush_while_due() {
    while (flush_due()) {
        // The flush that begins now makes durable the entries that are complete now.
        const std::uint64_t seq = complete_;
        const std::uint64_t mark = complete_mark_;
        const std::uint64_t tickets = flush_tickets_;
        const auto flushed = co_await device_.flush();
        if (!flushed) {
            fail(flushed.error(), "flush");
            break;
        }
        if (failed_) break;
        flush_tickets_done_ = tickets;
        trusted_ = std::max(trusted_, mark);
        became_durable(seq);
    }
    flushing_ = false;
    if (!failed_ && last_records_seq_ > trusted_) arm_timer();
}

void CommitPath::became_durable(std::uint64_t seq) {
    durable_ = seq;
    while (!waiting_.empty() && waiting_.front().seq_ <= seq) end(*waiting_.pop_front());
    progress_.wake_all();
    retire();
}

void CommitPath::trust(std::uint64_t seq) {
    trusted_ = std::max(trusted_, seq);
    progress_.wake_all();
}

void CommitPath::end(Commit& commit) {
    commit.stage_ = Commit::Stage::kEnded;
    if (commit.waiter_) reactor_.schedule(commit.waiter_);
}

void CommitPath::fail(const Error& error, const char* what) {
    if (failed_) return;
    // Whether the writes so far reached the disk is unknown, so no caller gets kNoSpace.
    const char* const why = error.code == Errc::kNoSpace
                                ? "no space in the file system that holds the disk image"
                                : what;
    failed_ = Error{.code = Errc::kIo, .os_errno = error.os_errno, .context = why};
    while (Commit* commit = waiting_.pop_front()) {
        commit->failed_ = true;
        commit->error_ = *failed_;
        end(*commit);
    }
    disarm();
    close_timer_.disarm();
    progress_.wake_all();
    wake_room();
    path_failed();
}

Error CommitPath::closed_error() {
    return {.code = Errc::kClosed, .context = "the log is closing"};
}

// -- waiting for all commits --

Task<Result<void>> CommitPath::sync(core::WaitOptions wait) {
    const std::uint64_t seq = begun_seq();
    leave_soon();
    sync_wanted_ = std::max(sync_wanted_, seq);
    start_flusher();
    for (;;) {
        if (failed_) co_return std::unexpected(*failed_);
        if (durable_ >= seq) co_return Result<void>{};
        const auto woken = co_await progress_.wait(wait);
        if (!woken) co_return std::unexpected(woken.error());
    }
}

// An entry that is closed when `seq` is durable has a mark that says so.
Task<Result<void>> CommitPath::settle(std::uint64_t seq, core::WaitOptions wait) {
    ENSURE(seq <= begun_seq());
    while (trusted_ < seq) {
        const auto synced = co_await sync(wait);
        if (!synced) co_return synced;
        if (trusted_ >= seq) break;
        // Does not take the room for cleaning, which only cleaning returns.
        auto room = co_await reserve(0, wait, Purpose::kFreeing);
        if (!room) co_return std::unexpected(room.error());
        if (trusted_ >= seq) break;  // Another entry did it while this one waited for room.
        Commit mark;
        add(mark, std::move(*room), {}, 0, Durability::kDurable, Data::kNone);
        const auto durable = co_await DurableAwaiter(mark);
        if (!durable) co_return durable;
    }
    co_return Result<void>{};
}

Task<Result<void>> CommitPath::flush_device() {
    const std::uint64_t ticket = ++flush_tickets_;
    start_flusher();
    for (;;) {
        if (failed_) co_return std::unexpected(*failed_);
        if (flush_tickets_done_ >= ticket) co_return Result<void>{};
        const auto woken = co_await progress_.wait({});  // It ends or the log fails.
        if (!woken) co_return std::unexpected(woken.error());
    }
}

void CommitPath::start_flusher() {
    if (flushing_ || !flush_due()) return;
    flushing_ = true;
    spawn(flush_while_due());
}

void CommitPath::arm_timer() {
    if (!armed()) reactor_.arm(*this, after(reactor_.now(), options_.flush_interval));
}

void CommitPath::on_time(core::Timer& timer) {
    auto& self = static_cast<CommitPath&>(timer);
    if (self.failed_ || self.closing_) return;
    const std::uint64_t begun = self.begun_seq();
    if (begun > self.durable_) {
        self.leave_soon();
        self.sync_wanted_ = begun;
        self.start_flusher();
    } else if (self.last_records_seq_ > self.trusted_) {
        self.spawn(self.write_idle_mark());
    }
}

// The mark shows that all entries before it are durable, so that a start after an idle time trusts
// the whole log. It is optional: without room for it none is written.
Task<void> CommitPath::write_idle_mark() {
    if (failed_ || closing_ || !has_room(0, Purpose::kAdding)) co_return;
    const auto settled = co_await settle(last_records_seq_, {});
    if (!settled) co_return;  // The log has failed, or is being closed, which says the same.
}

}  // namespace fopd::store

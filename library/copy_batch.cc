#include "library/copy_batch.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "core/ensure.h"
#include "core/wait_queue.h"
#include "objects/fids.h"

namespace fopd::library {

namespace {

constexpr std::size_t kAheadBytes = store::kTapeDataBytes;
// How long a copy waits for changes of its object that are in progress.
constexpr Duration kCopyPatience = 5s;
// Labels and filemarks of a file, its last block, and the headers of a member.
constexpr std::uint64_t kFileOverheadBytes = 1ULL << 20;

// The bytes that a member takes on tape: its data, the list of checksums, and headers.
std::uint64_t tape_bytes(std::uint64_t size_bytes) {
    return size_bytes + size_bytes / store::kMemberBlockBytes * store::kChecksumLineBytes +
           2 * store::kMemberHeaderBytesMax;
}

}  // namespace

// The bytes of an outgoing copy, read at its home. While a piece is written to tape, the next one
// is read into memory of the batch.
class CopyBatch::Source final : public store::MemberSource {
public:
    Source(const Parts& parts, std::uint32_t locality, const OutgoingCopy& copy, core::Buffer ahead)
        : parts_(parts), locality_(locality), copy_(copy), ahead_(ahead), ended_(parts.reactor) {}

    Task<Result<void>> read(std::uint64_t offset, core::Buffer into) override;
    Task<Result<void>> checksums(std::uint64_t first, std::span<std::uint32_t> into) override {
        copy_.copy_checksums(first, into);
        co_return Result<void>{};
    }
    // Waits for the end of the read in flight.
    Task<void> end() {
        while (runs_) {
            // No deadline: the disk completes each read.
            [[maybe_unused]] const auto woken = co_await ended_.wait({});
        }
    }

private:
    Task<Result<void>> fetch(std::uint64_t offset, core::Buffer into);
    Task<void> fetch_ahead();

    const Parts& parts_;
    const std::uint32_t locality_;
    const OutgoingCopy& copy_;
    const core::Buffer ahead_;
    // The part of the object that is in ahead_, or is being read into it.
    std::uint64_t ahead_offset_ = 0;
    std::size_t ahead_bytes_ = 0;
    Result<void> ahead_result_{};
    bool runs_ = false;
    core::WaitQueue ended_;
};

Task<Result<void>> CopyBatch::Source::read(std::uint64_t offset, core::Buffer into) {
    if (parts_.stopping) {
        co_return std::unexpected(Error{.code = Errc::kCancelled, .context = "the library stops"});
    }
    co_await end();
    const bool is_there = ahead_bytes_ > 0 && ahead_offset_ == offset &&
                          ahead_bytes_ >= into.size_bytes && ahead_result_.has_value();
    if (is_there) {
        std::ranges::copy(ahead_.span().first(into.size_bytes), into.data);
    } else {
        const auto fetched = co_await fetch(offset, into);
        if (!fetched) co_return fetched;
    }
    const std::uint64_t next = offset + into.size_bytes;
    ahead_bytes_ = static_cast<std::size_t>(
        std::min<std::uint64_t>(copy_.member.size_bytes - next, ahead_.size_bytes));
    ahead_offset_ = next;
    if (ahead_bytes_ > 0 && !parts_.gate.closed()) {
        runs_ = true;
        parts_.reactor.spawn(parts_.gate, fetch_ahead());
    } else {
        ahead_bytes_ = 0;
    }
    co_return Result<void>{};
}

Task<void> CopyBatch::Source::fetch_ahead() {
    const core::Buffer into{.data = ahead_.data, .size_bytes = ahead_bytes_};
    ahead_result_ = co_await fetch(ahead_offset_, into);
    runs_ = false;
    ended_.wake_all();
}

Task<Result<void>> CopyBatch::Source::fetch(std::uint64_t offset, core::Buffer into) {
    const OutgoingCopies::Read what{.copy = &copy_, .offset = offset, .into = into};
    auto job = [what](StagingDisks& disks) { return disks.outgoing().read(what); };
    co_return co_await parts_.homes.run_at<void>(locality_, &job);
}

// -- a run --

CopyBatch::CopyBatch(const Parts& parts, const Limits& limits, Wish wish, std::vector<Item> items)
    : parts_(parts),
      limits_(limits),
      wish_(std::move(wish)),
      all_(std::move(items)),
      rest_(all_.begin(), all_.end()) {
    for (const Item& each : all_) bytes_ += tape_bytes(each.object.size_bytes);
    const std::uint64_t files =
        2 + bytes_ / limits_.file_bytes + all_.size() / limits_.file_members;
    bytes_ += 2 * files * kFileOverheadBytes;
}

std::uint64_t CopyBatch::largest_object(std::uint64_t free_bytes) {
    const std::uint64_t overhead = tape_bytes(0) + kFileOverheadBytes;
    if (free_bytes <= overhead) return 0;
    constexpr std::uint64_t kOnTape = store::kMemberBlockBytes + store::kChecksumLineBytes;
    return (free_bytes - overhead) / kOnTape * store::kMemberBlockBytes;
}

Task<Result<void>> CopyBatches::run(DriveUnit* drive, CartridgeId cartridge) {
    if (batches_.size() == 1) return batches_.front()->run(drive, cartridge);
    if (join_.failed()) return batches_.front()->try_out(drive, cartridge);
    ENSURE(begun_ < batches_.size());
    return batches_[begun_++]->run(drive, cartridge);
}

Task<Result<void>> CopyBatch::run(DriveUnit* drive, CartridgeId cartridge) {
    auto written = co_await write(drive, cartridge);
    co_return co_await end_run(std::move(written));
}

Task<Result<void>> CopyBatch::try_out(DriveUnit* drive, CartridgeId cartridge) {
    if (parts_.stopping) {
        co_return std::unexpected(Error{.code = Errc::kCancelled, .context = "the library stops"});
    }
    const CartridgeState state = drive->shelf().find(cartridge)->state;
    if (state == CartridgeState::kBlank) co_return co_await drive->format(wish_.pool);
    if (state != CartridgeState::kOk) {
        co_return std::unexpected(
            Error{.code = Errc::kInvalid, .context = "the cartridge can no longer be written"});
    }
    co_return co_await drive->try_writing();
}

// Records the copies if the batches of all cartridges have succeeded.
Task<Result<void>> CopyBatch::end_run(Result<void> result) {
    CopyJoin::Copies durable = std::exchange(durable_, {});
    if (wish_.copies == 1) {
        // The rest of the batch may follow with another drive.
        co_await parts_.join.record(std::move(durable));
        co_return result;
    }
    if (!result) {
        parts_.join.fail();
        co_return result;
    }
    const bool recorded = co_await parts_.join.arrive(std::move(durable));
    if (recorded) co_return result;
    // Another batch has failed; this drive and cartridge are not at fault.
    co_return Result<void>{};
}

Task<Result<void>> CopyBatch::write(DriveUnit* drive, CartridgeId cartridge) {
    cartridge_ = cartridge;
    new_bytes_ = 0;
    file_bytes_ = 0;
    is_full_ = false;
    outcome_.tape_ended = false;
    if (ahead_.span().empty()) {
        auto memory = store::AlignedMemory::allocate(kAheadBytes);
        if (!memory) co_return std::unexpected(memory.error());
        ahead_ = std::move(*memory);
    }
    if (drive->shelf().find(cartridge)->state == CartridgeState::kBlank) {
        const auto formatted = co_await drive->format(wish_.pool);
        if (!formatted) co_return formatted;
    }
    const auto writer = co_await drive->writer();
    if (!writer) co_return std::unexpected(writer.error());
    writer_ = *writer;
    vsn_ = drive->shelf().find(cartridge)->vsn_text();
    auto result = co_await write_items(drive);
    if (writer_->file_open()) {
        writer_->abandon();
        take_back_file();
    }
    if (!writer_->failed() && !complete_.empty()) {
        const auto committed = co_await commit(drive);
        if (!committed) result = committed;
    }
    if (!result) take_back_all();
    if (is_full_ && drive->shelf().find(cartridge)->state == CartridgeState::kOk) {
        drive->shelf().set_state(cartridge, CartridgeState::kFull, "");
        [[maybe_unused]] const auto saved = co_await drive->shelf().save();
    }
    writer_ = nullptr;
    co_return result;
}

void CopyBatch::take_back_file() {
    for (Written& each : in_file_) rest_.push_back(std::move(each.item));
    in_file_.clear();
}

// Forgets the members since the last sync: they may not be on the tape.
void CopyBatch::take_back_all() {
    take_back_file();
    for (Written& each : complete_) rest_.push_back(std::move(each.item));
    complete_.clear();
}

Task<Result<void>> CopyBatch::write_items(DriveUnit* drive) {
    while (!rest_.empty() && !parts_.stopping && !parts_.join.failed()) {
        const Item item = rest_.front();
        rest_.pop_front();
        const auto step = co_await write_item(drive, &item);
        if (!step) {
            rest_.push_back(item);
            co_return std::unexpected(step.error());
        }
        if (*step == Step::kTapeEnds) {
            rest_.push_front(item);
            outcome_.tape_ended = true;
            break;
        }
    }
    if (!writer_->file_open()) co_return Result<void>{};
    if (in_file_.empty()) {
        writer_->abandon();
        co_return Result<void>{};
    }
    const auto ended = co_await end_file();
    if (ended) co_return ended;
    const auto step = note_end(ended.error());
    if (!step) co_return std::unexpected(step.error());
    outcome_.tape_ended = true;
    co_return Result<void>{};
}

Task<Result<CopyBatch::Step>> CopyBatch::write_item(DriveUnit* drive, const Item* item) {
    std::uint64_t from = 0;
    for (;;) {
        auto copy = co_await open_piece(item, from);
        if (!copy) {
            const Errc why = copy.error().code;
            // The object is gone or was copied meanwhile, or it is in use and waits for a later
            // batch.
            const bool goes_on = why == Errc::kNotFound || why == Errc::kTimedOut ||
                                 why == Errc::kCancelled || why == Errc::kClosed;
            if (goes_on) co_return Step::kSkipped;
            const Step step = co_await note_error(item, copy.error());
            co_return step;
        }
        OutgoingCopy open = std::move(*copy);
        const auto step = co_await write_piece(drive, item, &open);
        co_await close_piece(item->locality, open.number);
        if (!step || *step != Step::kWritten) co_return step;
        from = open.member.offset + open.member.size_bytes;
        if (from >= open.member.object_bytes) co_return Step::kWritten;
    }
}

Task<Result<OutgoingCopy>> CopyBatch::open_piece(const Item* item, std::uint64_t from) {
    const OutgoingCopies::Wish wish{
        .fid = item->object.fid,
        .from = from,
        .piece_bytes = limits_.piece_bytes,
        .copies = wish_.copies,
        .vsn = vsn_,
        .wait = {.deadline = after(parts_.reactor.now(), kCopyPatience)}};
    auto job = [wish](StagingDisks& disks) { return disks.outgoing().open(wish); };
    co_return co_await parts_.homes.run_at<OutgoingCopy>(item->locality, &job);
}

Task<void> CopyBatch::close_piece(std::uint32_t locality, std::uint64_t number) {
    auto job = [number](StagingDisks& disks) { disks.outgoing().close(number); };
    [[maybe_unused]] const auto closed = co_await parts_.homes.call_at<void>(locality, &job);
}

bool CopyBatch::fits(const Cartridge& cartridge, const store::Member& member) const {
    const std::uint64_t needed =
        new_bytes_ + file_bytes_ + tape_bytes(member.size_bytes) + kFileOverheadBytes;
    return needed <= MediaShelf::free_bytes(cartridge);
}

Task<Result<CopyBatch::Step>> CopyBatch::write_piece(DriveUnit* drive, const Item* item,
                                                     OutgoingCopy* copy) {
    if (!store::is_valid(copy->member)) {
        // A name that is not valid text is left out; the fid identifies the object.
        copy->member.name.clear();
    }
    const Cartridge& cartridge = *drive->shelf().find(cartridge_);
    if (!fits(cartridge, copy->member)) {
        const bool is_empty = cartridge.files == 0 && complete_.empty() && in_file_.empty();
        if (is_empty) outcome_.too_large = item->object.fid;
        const std::uint64_t left = MediaShelf::free_bytes(cartridge);
        is_full_ = !is_empty && left < cartridge.capacity_bytes / MediaShelf::kNearlyFullPart;
        co_return Step::kTapeEnds;
    }
    const bool file_is_full =
        file_bytes_ >= limits_.file_bytes || in_file_.size() >= limits_.file_members;
    if (writer_->file_open() && file_is_full) {
        const auto ended = co_await end_file();
        if (!ended) co_return note_end(ended.error());
    }
    if (!writer_->file_open()) {
        const auto begun = co_await begin_file(drive);
        if (!begun) co_return note_end(begun.error());
    }
    Source source(parts_, item->locality, *copy, ahead_.buffer());
    auto adding = writer_->add(copy->member, &source);
    auto added = co_await std::move(adding);
    co_await source.end();
    if (added) {
        file_bytes_ += tape_bytes(copy->member.size_bytes);
        in_file_.push_back({.item = *item, .entry = std::move(*added)});
        co_return Step::kWritten;
    }
    const auto ended = note_end(added.error());
    if (!ended || *ended == Step::kTapeEnds) co_return ended;
    co_return co_await note_error(item, added.error());
}

// An error has ended the file, so its members are lost. Either the tape has failed, or only the
// object that was written last.
Result<CopyBatch::Step> CopyBatch::note_end(const Error& error) {
    take_back_file();
    if (writer_->failed()) return std::unexpected(error);
    if (error.code != Errc::kNoSpace) return Step::kFailed;
    is_full_ = true;
    return Step::kTapeEnds;
}

// Gives up the object, which cannot be copied as it is. The batch goes on with the others.
Task<CopyBatch::Step> CopyBatch::note_error(const Item* item, Error error) {
    if (error.code == Errc::kCancelled || error.code == Errc::kClosed) co_return Step::kSkipped;
    ++outcome_.not_copied;
    const std::string object = objects::format_fid(item->object.fid);
    const std::string reason = describe(error);
    auto job = [fid = item->object.fid](StagingDisks& disks) {
        disks.staged().give_up(fid);
        return disks.name_of(fid);
    };
    const auto told = co_await parts_.homes.call_at<std::string>(item->locality, &job);
    const std::string name = told ? *told : std::string();
    core::emit(parts_.events, core::Level::kError, "library.object_not_copied",
               {{"object", std::string_view(object)},
                {"name", std::string_view(name)},
                {"reason", std::string_view(reason)}});
    co_return Step::kSkipped;
}

// -- files --

Task<Result<void>> CopyBatch::begin_file(DriveUnit* drive) {
    file_bytes_ = 0;
    const Cartridge& cartridge = *drive->shelf().find(cartridge_);
    const std::uint64_t id = DriveUnit::file_id(cartridge, writer_->end().files + 1);
    co_return co_await writer_->begin_file(store::TapeFileKind::kObjects, id, parts_.clock.wall());
}

Task<Result<void>> CopyBatch::end_file() {
    const auto ended = co_await writer_->end_file();
    if (!ended) co_return std::unexpected(ended.error());
    std::ranges::move(in_file_, std::back_inserter(complete_));
    in_file_.clear();
    new_bytes_ += file_bytes_ + kFileOverheadBytes;
    file_bytes_ = 0;
    co_return Result<void>{};
}

Task<Result<void>> CopyBatch::commit(DriveUnit* drive) {
    const auto synced = co_await writer_->sync();
    if (!synced) co_return synced;
    drive->shelf().move_end(cartridge_, writer_->durable_end(), std::exchange(new_bytes_, 0));
    drive->shelf().note_collection(cartridge_, all_.front().object.group.collection);
    const auto saved = co_await drive->shelf().save();
    if (!saved) co_return saved;
    durable_ = take_copies(*drive->shelf().find(cartridge_));
    co_return Result<void>{};
}

CopyJoin::Copies CopyBatch::take_copies(const Cartridge& cartridge) {
    const auto now_s = static_cast<std::uint32_t>(parts_.clock.wall().unix_ns / 1'000'000'000);
    CopyJoin::Copies copies;
    for (const Written& each : complete_) {
        const store::TapeEntry& entry = each.entry;
        store::Copy copy{.fid = each.item.object.fid,
                         .offset = entry.member.offset,
                         .length = entry.member.size_bytes,
                         .version = entry.member.version,
                         .position = {.file = static_cast<std::uint32_t>(entry.file.number),
                                      .member = entry.position},
                         .block = entry.file.block,
                         .checksum = entry.member.checksum,
                         .written_s = now_s};
        copy.cartridge = {.vsn = vsn_, .generation = cartridge.generation};
        copies[each.item.locality].push_back(copy);
    }
    complete_.clear();
    return copies;
}

}  // namespace fopd::library

// How a scrub reads the live copies on a cartridge and compares them with their records. One
// cartridge is scrubbed at a time.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "library/awaited_tape.h"
#include "library/pending_recall.h"
#include "library/repacking.h"
#include "library/scrubbing.h"
#include "library/tape_library.h"
#include "objects/fids.h"
#include "objects/object_name.h"

namespace fopd::library {

namespace {

using Kind = MediaOutcome::Kind;

// The bytes that one request reads; between two requests, others can get the drive.
constexpr std::uint64_t kScrubBytesAtOnce = 4ULL << 30;
// A copy counts as unreadable after so many failed attempts, if drives can read other copies.
constexpr std::uint32_t kScrubTriesMax = 3;
// The scrub ends after so many failed requests in a row: they tell nothing of the copies.
constexpr std::uint32_t kScrubFailuresMax = 30;
// The pause after a failure, such as a missing disk or a drive that is down.
constexpr Duration kScrubPause = 10s;

}  // namespace

// Reads the copies of a page in their order, up to kScrubBytesAtOnce.
class TapeLibrary::ScrubJob final : public TapeJob {
public:
    ScrubJob(const bool& stopping, const core::CancelSource& cancel, store::Cartridge on,
             const CopyPage& page, std::size_t begin)
        : stopping_(stopping), cancel_(cancel), on_(on), page_(page), at_(begin) {}

    Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge) override;

    struct Damage {
        std::size_t index = 0;  // The index of the copy in the page.
        Error error{};
    };
    // The index of the first copy that was not read.
    std::size_t at() const { return at_; }
    // The drives that could not read the copy there. None: no drive had the cartridge.
    const std::vector<std::string>& failed_drives() const { return failed_drives_; }
    std::optional<store::Copy> last_read() const { return last_read_; }
    const CopyPage& page() const { return page_; }
    const std::vector<Damage>& damages() const { return damages_; }

private:
    Task<Result<void>> read_one(DriveUnit* drive, CartridgeId cartridge, const store::Copy* copy);

    const bool& stopping_;
    const core::CancelSource& cancel_;
    const store::Cartridge on_;
    const CopyPage& page_;
    std::size_t at_;
    std::vector<Damage> damages_;
    std::vector<std::string> failed_drives_;
    std::optional<store::Copy> last_read_;
};

Task<Result<void>> TapeLibrary::ScrubJob::run(DriveUnit* drive, CartridgeId cartridge) {
    if (drive->shelf().find(cartridge)->generation != on_.generation) co_return Result<void>{};
    std::uint64_t bytes = 0;
    while (at_ < page_.items.size() && bytes < kScrubBytesAtOnce) {
        if (stopping_ || cancel_.cancelled()) break;
        const store::Copy copy = page_.items[at_].move.copy;
        const auto read = co_await read_one(drive, cartridge, &copy);
        // Damaged bytes are the cartridge's fault; any other error may be the drive's.
        if (!read && read.error().code != Errc::kCorrupt) {
            failed_drives_.emplace_back(drive->name());
            co_return read;
        }
        if (read) {
            last_read_ = copy;
        } else {
            damages_.push_back({.index = at_, .error = read.error()});
        }
        failed_drives_.clear();
        bytes += copy.length;
        ++at_;
    }
    co_return Result<void>{};
}

Task<Result<void>> TapeLibrary::ScrubJob::read_one(DriveUnit* drive, CartridgeId cartridge,
                                                   const store::Copy* copy) {
    const auto got = co_await drive->reader();
    if (!got) co_return std::unexpected(got.error());
    const auto learnt =
        co_await drive->learn_number({.number = copy->position.file, .block = copy->block});
    if (!learnt) co_return learnt;
    store::TapeReader* const reader = *got;
    store::TapeEntry entry{.file = {.number = copy->position.file,
                                    .block = copy->block,
                                    .file_id = DriveUnit::file_id(*drive->shelf().find(cartridge),
                                                                  copy->position.file)},
                           .position = copy->position.member,
                           .member = {.fid = copy->fid.origin(),
                                      .version = copy->version,
                                      .offset = copy->offset,
                                      .size_bytes = copy->length,
                                      .checksum = copy->checksum}};
    auto opening = reader->open(std::move(entry));
    const auto opened = co_await std::move(opening);
    if (!opened) co_return opened;
    for (;;) {
        const auto part = co_await reader->next();
        if (!part) co_return std::unexpected(part.error());
        if (part->bytes.empty()) co_return Result<void>{};
    }
}

// -- requests --

Task<MediaOutcome> TapeLibrary::scrub(std::string barcode) {
    const Cartridge* const found = known_cartridge(barcode);
    if (found == nullptr) co_return no_such_medium(barcode);
    const CartridgeId id = found->id;
    if (found->scrub_file != 0) co_return MediaOutcome{};
    if (!is_readable(found->state)) {
        co_return outcome(Kind::kRefused,
                          "cartridge " + barcode + " is " + std::string(to_string(found->state)));
    }
    if (scrubs_.is_running(id)) co_return MediaOutcome{};
    Cartridge& cartridge = *shelf_->to_change().change(id);
    cartridge.scrub_file = 1;
    cartridge.scrub_member = 0;
    cartridge.damaged_copies = 0;
    begin_scrubs();
    const auto saved = co_await shelf_->save();
    co_return outcome(saved);
}

Task<MediaOutcome> TapeLibrary::cancel_scrub(std::string barcode) {
    const Cartridge* const found = known_cartridge(barcode);
    if (found == nullptr) co_return no_such_medium(barcode);
    if (found->scrub_file == 0) {
        co_return outcome(Kind::kRefused, "cartridge " + barcode + " has no scrub to end");
    }
    const CartridgeId id = found->id;
    Cartridge& cartridge = *shelf_->to_change().change(id);
    cartridge.scrub_file = 0;
    cartridge.scrub_member = 0;
    if (scrubs_.is_running(id)) {
        Scrubbing* const running = scrubs_.find(id);
        running->cancel.cancel();
        if (!running->has_turn) co_await end_scrub(running, {});
        co_await scrubs_.until_ended(id);
    }
    const auto saved = co_await shelf_->save();
    co_return outcome(saved);
}

std::optional<MediumWork> TapeLibrary::scrub_work(std::string_view barcode) const {
    const Cartridge* const found = known_cartridge(barcode);
    const Scrubbing* const scrub = found == nullptr ? nullptr : scrubs_.find(found->id);
    if (scrub == nullptr) return std::nullopt;
    return scrub->work;
}

// -- the scrubs --

// Takes up the scrubs of the table of media. A scrub that waits for another one counts as running.
void TapeLibrary::begin_scrubs() {
    for (const Cartridge& each : shelf_->table().all()) {
        if (each.scrub_file == 0 || scrubs_.is_running(each.id)) continue;
        Scrubbing& scrub = scrubs_.add(each.id);
        scrub.on = {.vsn = each.vsn_text(), .generation = each.generation};
        scrub.from = {.file = each.scrub_file, .member = each.scrub_member};
    }
    scrubs_.run_in_turn(this, &TapeLibrary::run_scrub);
}

Task<void> TapeLibrary::run_scrub(Scrubbing* scrub) {
    auto read = co_await read_all(scrub);
    co_await end_scrub(scrub, std::move(read));
}

Task<Result<void>> TapeLibrary::read_all(Scrubbing* scrub) {
    for (;;) {
        if (scrub->cancel.cancelled()) {
            co_return std::unexpected(
                Error{.code = Errc::kCancelled, .context = "the scrub was ended"});
        }
        if (!is_readable(shelf_->find(scrub->id)->state)) {
            co_return std::unexpected(
                Error{.code = Errc::kIo, .context = "the cartridge has become unreadable"});
        }
        if (scrub->work.copies == 0) {
            const auto live = co_await live_on(scrub->on);
            if (live) {
                scrub->work.copies = live->copies;
                scrub->work.bytes = live->bytes;
            }
        }
        auto page = co_await copies_from(scrub->on, scrub->from);
        auto read = page ? Result<void>{} : std::unexpected(page.error());
        if (page) {
            auto reading = co_await read_page(scrub, &*page);
            read = std::move(reading);
        }
        if (read && page->items.empty() && !page->known_to) co_return Result<void>{};
        if (read) continue;
        const bool is_over =
            read.error().code == Errc::kClosed || read.error().code == Errc::kCancelled;
        if (is_over) co_return read;
        if (scrub->failures_in_turn >= kScrubFailuresMax) {
            co_return std::unexpected(
                Error{.code = Errc::kIo, .context = "no drive can read the cartridge"});
        }
        const auto slept = co_await parts_.reactor.sleep_for(kScrubPause, &scrub->cancel);
        if (!slept) co_return slept;
    }
}

// Reads the copies of a page with one request, which may end before the last of them.
Task<Result<void>> TapeLibrary::read_page(Scrubbing* scrub, CopyPage* page) {
    if (page->items.empty()) {
        if (!page->known_to) co_return Result<void>{};
        scrub->from = *page->known_to;
        ++scrub->from.member;
        co_return Result<void>{};
    }
    ScrubJob job(stopping_, scrub->cancel, scrub->on, *page, 0);
    const auto read = co_await read_copies(scrub, &job);
    for (const ScrubJob::Damage& each : job.damages()) {
        co_await note_damage(scrub, page, each.index, each.error);
    }
    std::size_t done = job.at();
    if (done > 0) {
        scrub->tries = 0;
        scrub->drives.clear();
        scrub->failures_in_turn = 0;
    }
    if (!read) ++scrub->failures_in_turn;
    if (!read && !job.failed_drives().empty()) {
        ++scrub->tries;
        scrub->drives.insert(job.failed_drives().begin(), job.failed_drives().end());
    }
    if (!read && scrub->tries >= kScrubTriesMax) {
        // A single drive may be broken.
        bool is_damaged = scrub->drives.size() > 1;
        if (!is_damaged) is_damaged = co_await can_read_another(scrub, page, done);
        scrub->tries = 0;
        scrub->drives.clear();
        if (is_damaged) {
            // The copy counts as unreadable; the scrub goes on with the next one.
            co_await note_damage(scrub, page, done, read.error());
            scrub->failures_in_turn = 0;
            ++done;
        }
    }
    for (std::size_t i = 0; i < done; ++i) {
        ++scrub->work.copies_done;
        scrub->work.bytes_done += page->items[i].move.copy.length;
        figures_.works.scrubbed_copies.add(1);
        figures_.works.scrubbed_bytes.add(page->items[i].move.copy.length);
    }
    if (done > 0) {
        scrub->from = page->items[done - 1].move.copy.position;
        ++scrub->from.member;
        const auto saved = co_await save_scrub(scrub);
        if (!saved) co_return saved;
    }
    co_return read;
}

Task<Result<void>> TapeLibrary::read_copies(Scrubbing* scrub, ScrubJob* job) {
    const AwaitedTape::Scheduler scheduler{.reactor = parts_.reactor, .main = parts_.io};
    const AwaitedTape::Options options{.type = io_sched::IoType::kRead,
                                       .priority = io_sched::IoPriority::kBackground,
                                       .cancel = &scrub->cancel};
    const std::vector<MoveBatch::Item>& items = job->page().items;
    const store::Copy first = items.front().move.copy;
    std::uint64_t bytes = 0;
    for (const MoveBatch::Item& each : items) bytes += each.move.copy.length;
    std::vector<io_sched::IoPart> where{
        {.medium = io_sched::MediumId{scrub->id},
         .offset = first.block * devices::kTapeBlockMax + first.position.member,
         .size_bytes = std::min(bytes, kScrubBytesAtOnce)}};
    AwaitedTape request(scheduler, *job, options, std::move(where));
    const auto read = co_await request;
    show_drives();
    if (job->last_read()) scrub->last_read = job->last_read();
    co_return read;
}

// Whether the drives can read another copy on the cartridge than the one that has failed: a copy
// that was read before, or else the copy of the page that is farthest away.
Task<bool> TapeLibrary::can_read_another(Scrubbing* scrub, const CopyPage* page,
                                         std::size_t failed) {
    CopyPage other;
    if (scrub->last_read) {
        other.items.push_back({.move = {.copy = *scrub->last_read}});
    } else {
        if (page->items.size() < 2) co_return false;
        other.items.push_back(failed == 0 ? page->items.back() : page->items.front());
    }
    ScrubJob job(stopping_, scrub->cancel, scrub->on, other, 0);
    [[maybe_unused]] const auto read = co_await read_copies(scrub, &job);
    co_return job.at() > 0;
}

Task<void> TapeLibrary::note_damage(Scrubbing* scrub, CopyPage* page, std::size_t index,
                                    Error error) {
    const MoveBatch::Item& item = page->items[index];
    const store::Copy copy = item.move.copy;
    auto job = [fid = copy.fid](StagingDisks& disks) { return disks.name_of(fid); };
    const auto name = co_await homes_->call_at<std::string>(item.locality, &job);
    MediumWork::Failure failure{.fid = copy.fid,
                                .file = copy.position.file,
                                .name = name.value_or(std::string()),
                                .reason = describe(error)};
    const std::string barcode = shelf_->find(scrub->id)->barcode;
    const std::string object = objects::format_fid(copy.fid);
    core::emit(parts_.events, core::Level::kError, "library.copy_damaged",
               {{"medium", std::string_view(barcode)},
                {"file", std::uint64_t{failure.file}},
                {"object", std::string_view(object)},
                {"name", std::string_view(failure.name)},
                {"reason", std::string_view(failure.reason)}});
    figures_.works.damaged_copies.add(1);
    scrub->work.add(std::move(failure));
    Cartridge& cartridge = *shelf_->to_change().change(scrub->id);
    ++cartridge.damaged_copies;
    // The data on the cartridge differ from the records.
    const bool was_good =
        is_readable(cartridge.state) && cartridge.state != CartridgeState::kSuspect;
    if (was_good) {
        shelf_->set_state(scrub->id, CartridgeState::kSuspect, "a scrub has found damaged copies");
    }
}

// Saves the position of the next copy, at which the scrub goes on after a restart.
Task<Result<void>> TapeLibrary::save_scrub(Scrubbing* scrub) {
    Cartridge& cartridge = *shelf_->to_change().change(scrub->id);
    // A scrub that an administrator has ended does not go on.
    if (cartridge.scrub_file != 0) {
        cartridge.scrub_file = scrub->from.file;
        cartridge.scrub_member = scrub->from.member;
    }
    co_return co_await shelf_->save();
}

Task<void> TapeLibrary::end_scrub(Scrubbing* scrub, Result<void> result) {
    MediumWork& work = scrub->work;
    work.ended_at = parts_.reactor.now();
    Cartridge& cartridge = *shelf_->to_change().change(scrub->id);
    const std::string barcode = cartridge.barcode;
    // A format of the cartridge ends its scrub, too.
    const bool is_cancelled =
        scrub->cancel.cancelled() || cartridge.generation != scrub->on.generation;
    if (is_cancelled) {
        work.state = MediumWork::State::kCancelled;
    } else {
        const bool is_good = result && work.failures == 0;
        work.state = is_good ? MediumWork::State::kDone : MediumWork::State::kPartly;
        if (!result) {
            work.reason = describe(result.error());
        } else if (!is_good) {
            work.reason = "some copies are damaged";
        }
        cartridge.scrub_file = 0;
        cartridge.scrub_member = 0;
        const auto wall_s = parts_.clock.wall().unix_ns / 1'000'000'000;
        if (result) cartridge.scrubbed_s = static_cast<std::uint64_t>(wall_s);
        // If this is lost, the scrub reads the last copies again after a restart.
        [[maybe_unused]] const auto saved = co_await shelf_->save();
    }
    scrub->runs = false;
    tell_changed();
    // A stop of the node does not end the scrub: the next start resumes it.
    if (stopping_) co_return;
    core::emit(parts_.events,
               work.state == MediumWork::State::kPartly ? core::Level::kWarn : core::Level::kInfo,
               "library.scrub_ended",
               {{"medium", std::string_view(barcode)},
                {"result", to_string(work.state)},
                {"copies", work.copies_done},
                {"bytes", work.bytes_done},
                {"failures", work.failures},
                {"reason", std::string_view(work.reason)},
                {"seconds", in_seconds(work.ended_at - work.began_at)}});
}

}  // namespace fopd::library

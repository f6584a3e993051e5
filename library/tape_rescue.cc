// How objects are made of what cartridges alone say of them.
//
// A cartridge of a node that was lost is read from its beginning, by its index file and the headers
// of the files behind it. Each object that is complete becomes one with bytes on tape only; a
// second copy is added to it. The records carry all that was done, so that a rescue which was
// interrupted begins anew.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/ensure.h"
#include "core/random.h"
#include "library/awaited_tape.h"
#include "library/rescued_objects.h"
#include "library/rescuing.h"
#include "library/tape_library.h"
#include "objects/fids.h"
#include "objects/object_name.h"

namespace fopd::library {

namespace {

using Kind = MediaOutcome::Kind;
using How = RescuedObjects::How;

// Taken over at the same time: one flush of a disk may cover them all.
constexpr std::size_t kBatchMax = 64;
// Pieces of incomplete objects that are kept in memory, on all cartridges.
constexpr std::size_t kPiecesMax = 1'000'000;
constexpr std::uint32_t kRescueTriesMax = 3;
constexpr Duration kRescuePause = 10s;

Error ended_early() {
    return {.code = Errc::kCancelled, .context = "the rescue"};
}

}  // namespace

void TapeLibrary::FoundPieces::add(const store::Copy& copy) {
    const auto at = std::ranges::lower_bound(copies, key_of(copy), {}, store::key_of);
    if (at != copies.end() && key_of(*at) == key_of(copy)) {
        *at = copy;
    } else {
        copies.insert(at, copy);
    }
}

std::uint64_t TapeLibrary::FoundPieces::first_missing() const {
    std::uint64_t end = 0;
    for (const store::Copy& each : copies) {
        if (each.offset <= end) end = std::max(end, each.end());
    }
    return end;
}

// -- on a drive --

class TapeLibrary::RescueJob final : public TapeJob, store::RecoverySink {
public:
    RescueJob(TapeLibrary& library, Rescuing& rescue) : library_(library), rescue_(rescue) {}

    Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge) override;
    // The label is another node's.
    bool takes_any_label() const override { return true; }

private:
    Task<Result<void>> found(store::TapeEntry entry) override;
    Task<Result<void>> damaged(std::uint64_t file_number, Error error) override;
    Task<Result<void>> note_no_identity(CartridgeId cartridge, Error error);
    Result<void> may_go_on() const;

    TapeLibrary& library_;
    Rescuing& rescue_;
    DriveUnit* drive_ = nullptr;
};

Task<Result<void>> TapeLibrary::RescueJob::run(DriveUnit* drive, CartridgeId cartridge) {
    drive_ = drive;
    rescue_.batch.clear();
    rescue_.damaged_files = 0;
    const MediumWork before = std::exchange(rescue_.work, {});
    rescue_.work.began_at = before.began_at;
    const auto identity = co_await drive->identify();
    if (!identity) co_return co_await note_no_identity(cartridge, identity.error());
    const Cartridge& known = *library_.shelf_->find(cartridge);
    const bool is_other = known.generation != 0 && known.generation != identity->generation;
    if (is_other && known.state != CartridgeState::kFailed) {
        rescue_.reason = "the node has records of copies from before or after its format";
        co_return Result<void>{};
    }
    const auto taken = co_await drive->take_over(*identity);
    if (!taken) co_return taken;
    const auto found = co_await drive->find_copies(this);
    // It is not about the tape then.
    if (!may_go_on()) co_return Result<void>{};
    if (!found) co_return std::unexpected(found.error());
    co_await library_.take_batch(&rescue_);
    if (!may_go_on()) co_return Result<void>{};
    const std::uint64_t used = found->end.block * devices::kTapeBlockMax;
    library_.shelf_->to_change().change(cartridge)->used_bytes = 0;
    const std::uint64_t capacity = library_.shelf_->find(cartridge)->capacity_bytes;
    library_.shelf_->move_end(cartridge, found->end, std::min(used, capacity));
    co_return Result<void>{};
}

// Nothing of the drive, unless it cannot read.
Task<Result<void>> TapeLibrary::RescueJob::note_no_identity(CartridgeId cartridge, Error error) {
    rescue_.is_empty = error.code == Errc::kNotFound;
    if (error.code == Errc::kInvalid) {
        const std::string_view words = error.context;
        const auto blank = store::describe_kind(store::CartridgeKind::kBlank);
        rescue_.is_empty = words == blank;
        const bool is_known = library_.shelf_->find(cartridge)->generation != 0;
        rescue_.reason = rescue_.is_empty ? "" : words;
        if (!rescue_.is_empty && !is_known) {
            library_.shelf_->set_state(cartridge, CartridgeState::kForeign, words);
        }
        co_return Result<void>{};
    }
    if (rescue_.is_empty) co_return Result<void>{};
    co_return std::unexpected(error);
}

Result<void> TapeLibrary::RescueJob::may_go_on() const {
    if (library_.stopping_ || rescue_.cancel.cancelled()) return std::unexpected(ended_early());
    if (rescue_.stopped_by) return std::unexpected(*rescue_.stopped_by);
    return {};
}

Task<Result<void>> TapeLibrary::RescueJob::found(store::TapeEntry entry) {
    const auto goes_on = may_go_on();
    if (!goes_on) co_return goes_on;
    const Cartridge& cartridge = *library_.shelf_->find(*drive_->cartridge());
    const store::Member& member = entry.member;
    FoundCopy found{.member = member};
    found.copy = {.fid = member.fid,
                  .offset = member.offset,
                  .length = member.size_bytes,
                  .version = member.version,
                  .cartridge = {.vsn = cartridge.vsn_text(), .generation = cartridge.generation},
                  .position = {.file = static_cast<std::uint32_t>(entry.file.number),
                               .member = entry.position},
                  .block = entry.file.block,
                  .checksum = member.checksum,
                  // Not before that; the tape does not say when it was written.
                  .written_s = static_cast<std::uint32_t>(
                      std::max<std::int64_t>(member.changed_ns, 0) / 1'000'000'000)};
    ++rescue_.work.copies;
    rescue_.work.bytes += member.size_bytes;
    if (!drive_->takes_file(entry.file)) {
        co_await library_.not_rescued(&rescue_, &found, "its tape file has the id of another file");
        co_return Result<void>{};
    }
    const bool is_valid = store::is_copy_valid(found.copy) && !member.fid.is_moved() &&
                          entry.file.number <= std::numeric_limits<std::uint32_t>::max() &&
                          member.name_version < store::kNameVersionEnd;
    if (!is_valid) {
        co_await library_.not_rescued(&rescue_, &found, "its record on the tape is not valid");
        co_return Result<void>{};
    }
    rescue_.batch.push_back(std::move(found));
    if (rescue_.batch.size() == kBatchMax) co_await library_.take_batch(&rescue_);
    co_return may_go_on();
}

Task<Result<void>> TapeLibrary::RescueJob::damaged(std::uint64_t file_number, Error error) {
    const auto goes_on = may_go_on();
    if (!goes_on) co_return goes_on;
    ++rescue_.damaged_files;
    FoundCopy nothing;
    nothing.copy.position.file = static_cast<std::uint32_t>(file_number);
    co_await library_.not_rescued(&rescue_, &nothing, "the file is damaged: " + describe(error));
    co_return Result<void>{};
}

// -- asking for it --

std::string TapeLibrary::why_not_rescue(const Cartridge& cartridge, std::string_view pool) const {
    const std::string name = "cartridge " + cartridge.barcode;
    if (!pool.empty()) {
        const auto is_it = [&](const Pool& each) { return each.options.name == pool; };
        if (std::ranges::none_of(pools_, is_it)) {
            return "there is no tape pool " + std::string(pool);
        }
    }
    const bool is_known = cartridge.generation != 0 && cartridge.rescue == Rescue::kNone &&
                          cartridge.state != CartridgeState::kForeign;
    if (is_known)
        return name + " belongs to this node: only those of other or lost nodes are rescued";
    const bool is_bad =
        cartridge.state == CartridgeState::kMissing || cartridge.state == CartridgeState::kDisabled;
    if (is_bad) return name + " is " + std::string(to_string(cartridge.state));
    if (cartridge.repack == Repack::kRunning) return name + " is being repacked";
    if (cartridge.scrub_file != 0) return name + " is being scrubbed";
    return {};
}

Task<MediaOutcome> TapeLibrary::rescue(RescueWish wish) {
    const Cartridge* const found = co_await find_medium(wish.barcode);
    if (found == nullptr) co_return no_such_medium(wish.barcode);
    const CartridgeId id = found->id;
    if (found->rescue == Rescue::kRunning) co_return MediaOutcome{};
    std::string refusal = why_not_rescue(*found, wish.pool);
    if (!refusal.empty()) co_return outcome(Kind::kRefused, refusal);
    shelf_->withdraw(id);
    Cartridge& cartridge = *shelf_->to_change().change(id);
    cartridge.rescue = Rescue::kRunning;
    if (!wish.pool.empty()) cartridge.pool = wish.pool;
    shelf_->show(id);
    begin_rescues();
    const auto saved = co_await shelf_->save();
    co_return outcome(saved);
}

Task<MediaOutcome> TapeLibrary::cancel_rescue(std::string barcode) {
    const Cartridge* const found = known_cartridge(barcode);
    if (found == nullptr) co_return no_such_medium(barcode);
    const CartridgeId id = found->id;
    Rescuing* const running = rescues_.find(id);
    if (found->rescue != Rescue::kRunning || running == nullptr) {
        co_return outcome(Kind::kRefused, "cartridge " + barcode + " has no rescue to end");
    }
    running->cancel.cancel();
    if (!running->has_turn && running->runs) co_await end_rescue(running, {});
    co_await rescues_.until_ended(id);
    co_return MediaOutcome{};
}

std::optional<MediumWork> TapeLibrary::rescue_work(std::string_view barcode) const {
    const Cartridge* const found = known_cartridge(barcode);
    const Rescuing* const rescue = found == nullptr ? nullptr : rescues_.find(found->id);
    if (rescue == nullptr) return std::nullopt;
    MediumWork work = rescue->work;
    // The missing pieces may be found on other cartridges, so they count as long as they are
    // missing.
    const store::VsnText vsn = found->vsn_text();
    for (const auto& [key, pieces] : found_pieces_) {
        const auto here = std::ranges::find_if(
            pieces.copies, [&vsn](const store::Copy& each) { return each.cartridge.vsn == vsn; });
        if (here == pieces.copies.end() || work.state == MediumWork::State::kRunning) continue;
        work.add({.fid = key.first,
                  .file = here->position.file,
                  .name = pieces.member.name,
                  .reason = "it is not complete: no piece was found from byte " +
                            std::to_string(pieces.first_missing()) + " on"});
        if (work.state == MediumWork::State::kDone) work.state = MediumWork::State::kPartly;
        if (work.reason.empty()) work.reason = "pieces of objects are missing";
    }
    return work;
}

// -- their course --

void TapeLibrary::begin_rescues() {
    for (const Cartridge& each : shelf_->table().all()) {
        const bool is_marked = each.rescue == Rescue::kRunning;
        if (is_marked && !rescues_.is_running(each.id)) rescues_.add(each.id);
    }
    rescues_.run_in_turn(this, &TapeLibrary::run_rescue);
}

Task<void> TapeLibrary::run_rescue(Rescuing* rescue) {
    const std::string barcode = shelf_->find(rescue->id)->barcode;
    core::emit(parts_.events, core::Level::kInfo, "library.rescue_began",
               {{"medium", std::string_view(barcode)}});
    auto read = co_await read_to_rescue(rescue);
    co_await end_rescue(rescue, std::move(read));
}

Task<Result<void>> TapeLibrary::read_to_rescue(Rescuing* rescue) {
    for (std::uint32_t tries = 1;; ++tries) {
        const CartridgeState state = shelf_->find(rescue->id)->state;
        if (state == CartridgeState::kMissing || state == CartridgeState::kDisabled) {
            co_return std::unexpected(
                Error{.code = Errc::kIo, .context = "the cartridge is not there any more"});
        }
        RescueJob job(*this, *rescue);
        const AwaitedTape::Scheduler scheduler{.reactor = parts_.reactor, .main = parts_.io};
        const AwaitedTape::Options options{.type = io_sched::IoType::kRead,
                                           .priority = io_sched::IoPriority::kBackground,
                                           .cancel = &rescue->cancel};
        std::vector<io_sched::IoPart> where{{.medium = io_sched::MediumId{rescue->id}}};
        AwaitedTape request(scheduler, job, options, std::move(where));
        const auto read = co_await request;
        show_drives();
        if (stopping_ || rescue->cancel.cancelled()) co_return std::unexpected(ended_early());
        if (rescue->stopped_by) co_return std::unexpected(*rescue->stopped_by);
        if (read) co_return read;
        const Errc why = read.error().code;
        const bool is_over =
            why == Errc::kClosed || why == Errc::kCancelled || tries == kRescueTriesMax;
        if (is_over) co_return read;
        const auto slept = co_await parts_.reactor.sleep_for(kRescuePause, &rescue->cancel);
        if (!slept) co_return slept;
    }
}

// Its files are known to their end only if it was read without an error.
Task<void> TapeLibrary::end_rescue(Rescuing* rescue, Result<void> result) {
    MediumWork& work = rescue->work;
    work.ended_at = parts_.reactor.now();
    const bool is_cancelled = rescue->cancel.cancelled();
    rescue->batch.clear();
    if (!stopping_) {
        const Cartridge& before = *shelf_->find(rescue->id);
        const bool is_known = before.generation != 0;
        const bool has_all = result && rescue->reason.empty() && !is_cancelled;
        const bool is_whole = has_all && rescue->damaged_files == 0;
        if (!result) work.reason = describe(result.error());
        if (result && !rescue->reason.empty()) work.reason = rescue->reason;
        if (has_all && work.failures > 0) work.reason = "some objects were not rescued";
        work.state = is_cancelled                    ? MediumWork::State::kCancelled
                     : has_all && work.failures == 0 ? MediumWork::State::kDone
                                                     : MediumWork::State::kPartly;
        const bool is_done = work.state == MediumWork::State::kDone;
        shelf_->to_change().change(rescue->id)->rescue = !is_known && is_done ? Rescue::kNone
                                                         : is_done            ? Rescue::kDone
                                                                              : Rescue::kPartly;
        const bool is_suspect = before.state == CartridgeState::kSuspect && is_known;
        if (is_suspect && is_whole) {
            const bool is_full = MediaShelf::free_bytes(before) == 0;
            shelf_->set_state(rescue->id, is_full ? CartridgeState::kFull : CartridgeState::kOk,
                              "");
        } else if (is_suspect) {
            const char* const why =
                has_all ? "files on it are damaged" : "its rescue has not ended";
            shelf_->set_state(rescue->id, CartridgeState::kSuspect, why);
        }
        shelf_->show(rescue->id);
        // If that is lost, it is found out again.
        [[maybe_unused]] const auto saved = co_await shelf_->save();
    }
    rescue->runs = false;
    tell_changed();
    // It begins anew when the node has been started again.
    if (stopping_) co_return;
    const std::string barcode = shelf_->find(rescue->id)->barcode;
    core::emit(parts_.events,
               work.state == MediumWork::State::kDone ? core::Level::kInfo : core::Level::kWarn,
               "library.rescue_ended",
               {{"medium", std::string_view(barcode)},
                {"result", to_string(work.state)},
                {"copies", work.copies_done},
                {"bytes", work.bytes_done},
                {"failures", work.failures},
                {"reason", std::string_view(work.reason)},
                {"seconds", in_seconds(work.ended_at - work.began_at)}});
    // It may have been asked for again while its end was saved.
    begin_rescues();
    ring();
}

// -- what was found --

Task<void> TapeLibrary::not_rescued(Rescuing* rescue, const FoundCopy* found, std::string reason) {
    MediumWork::Failure failure{.fid = found->copy.fid,
                                .file = found->copy.position.file,
                                .name = found->member.name,
                                .reason = std::move(reason)};
    const std::string barcode = shelf_->find(rescue->id)->barcode;
    const std::string object = objects::format_fid(failure.fid);
    core::emit(parts_.events, core::Level::kWarn, "library.not_rescued",
               {{"medium", std::string_view(barcode)},
                {"file", std::uint64_t{failure.file}},
                {"object", std::string_view(object)},
                {"name", std::string_view(failure.name)},
                {"reason", std::string_view(failure.reason)}});
    rescue->work.add(std::move(failure));
    co_return;
}

// All of them at the same time.
Task<void> TapeLibrary::take_batch(Rescuing* rescue) {
    const std::vector<FoundCopy> batch = std::exchange(rescue->batch, {});
    core::Gate taken;
    for (const FoundCopy& each : batch) parts_.reactor.spawn(taken, take_copy(rescue, &each));
    co_await taken.close(parts_.reactor);
}

Task<void> TapeLibrary::take_copy(Rescuing* rescue, const FoundCopy* found) {
    const auto taken = co_await take_over(rescue, found);
    if (taken) {
        ++rescue->work.copies_done;
        rescue->work.bytes_done += found->member.size_bytes;
        co_return;
    }
    const Errc why = taken.error().code;
    // An object that nobody could take over is no reason to leave the others; a full disk is.
    const bool stops = why == Errc::kNoSpace || why == Errc::kClosed || why == Errc::kCancelled;
    if (stops && !rescue->stopped_by) rescue->stopped_by = taken.error();
    if (!stops) co_await not_rescued(rescue, found, describe(taken.error()));
}

// The tape pool of this node that gets the object; null: there is none.
const TapeLibrary::Pool* TapeLibrary::pool_for(CartridgeId id, const store::Member& member) {
    Cartridge& cartridge = *shelf_->to_change().change(id);
    const std::string& name = cartridge.pool.empty() ? member.pool : cartridge.pool;
    const auto pool = std::ranges::find(
        pools_, name, [](const Pool& each) { return std::string_view(each.options.name); });
    if (pool == pools_.end()) return nullptr;
    if (cartridge.pool.empty()) cartridge.pool = name;
    return &*pool;
}

Task<Result<void>> TapeLibrary::take_over(Rescuing* rescue, const FoundCopy* found) {
    const Pool* const pool = pool_for(rescue->id, found->member);
    if (pool == nullptr) {
        co_await not_rescued(rescue, found,
                             "this node has no tape pool \"" + found->member.pool +
                                 "\"; say which pool gets the objects");
        co_return Result<void>{};
    }
    // Such an object needs no tape; it was not written by a node of this project.
    if (found->member.object_bytes == 0) co_return Result<void>{};
    const auto home = co_await find_home(pool->id, found->copy.fid);
    if (!home) co_return std::unexpected(home.error());
    std::vector<store::Copy> copies{found->copy};
    const bool is_whole = found->copy.length == found->member.object_bytes;
    if (!is_whole && !home->is_there) {
        const std::pair key{found->copy.fid, found->copy.version};
        if (found_pieces_.size() >= kPiecesMax && !found_pieces_.contains(key)) {
            co_await not_rescued(rescue, found, "too many objects are incomplete");
            co_return Result<void>{};
        }
        FoundPieces& pieces = found_pieces_[key];
        pieces.member = found->member;
        pieces.add(found->copy);
        if (pieces.first_missing() != found->member.object_bytes) co_return Result<void>{};
        copies = pieces.copies;
        found_pieces_.erase(key);
    }
    if (copies.size() > store::Volume::kCopiesAtOnceMax) {
        co_await not_rescued(rescue, found, "it has too many pieces");
        co_return Result<void>{};
    }
    RescuedObjects::Wish wish{.member = found->member, .fid = home->fid, .pool = pool->id};
    for (store::Copy& each : copies) {
        each.fid = home->fid;
        wish.copies.push_back(each);
    }
    auto answer = co_await put_rescued(home->locality, &wish);
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->how == How::kTaken) {
        const auto gives_way = co_await does_give_way(pool->id, answer->by);
        if (!gives_way) co_return std::unexpected(gives_way.error());
        wish.over = answer->by;
        if (*gives_way) {
            auto again = co_await put_rescued(home->locality, &wish);
            if (!again) co_return std::unexpected(again.error());
            answer = std::move(again);
        }
    }
    if (answer->how == How::kExists) {
        co_await not_rescued(rescue, found, "an object with this id is here, and stays as it is");
    }
    if (answer->how == How::kTaken) {
        co_await not_rescued(rescue, found,
                             "object " + objects::format_fid(answer->by) + " has its name here");
    }
    if (answer->how == How::kOlder && answer->by != store::Fid{}) {
        const auto is_made_here = co_await is_made_at_home(pool->id, answer->by);
        if (is_made_here && *is_made_here) {
            co_await not_rescued(
                rescue, found, "object " + objects::format_fid(answer->by) + " has its name here");
        }
    }
    co_return Result<void>{};
}

Task<Result<RescuedObjects::Answer>> TapeLibrary::put_rescued(std::uint32_t locality,
                                                              const RescuedObjects::Wish* wish) {
    auto job = [wish](StagingDisks& disks) { return disks.rescued().put(wish); };
    co_return co_await homes_->run_at<RescuedObjects::Answer>(locality, &job);
}

// The object's own slot, if its disk takes objects of the pool; else one that follows from its id,
// so that it is the same next time. An object that is there already stays where it is.
Task<Result<TapeLibrary::RescueHome>> TapeLibrary::find_home(objects::PoolId pool,
                                                             store::Fid made) {
    auto list = [pool](StagingDisks& disks) { return disks.rescued().homes(pool); };
    const auto homes = co_await homes_->call_at<std::vector<RescuedObjects::Home>>(0, &list);
    if (!homes) co_return std::unexpected(homes.error());
    if (homes->empty()) {
        co_return std::unexpected(
            Error{.code = Errc::kNoSpace, .context = "the pool has no disk that takes objects"});
    }
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto look = [made](StagingDisks& disks) { return disks.rescued().find(made); };
        const auto found =
            co_await homes_->call_at<Result<std::optional<store::Fid>>>(locality, &look);
        if (!found) co_return std::unexpected(found.error());
        if (!*found) co_return std::unexpected(found->error());
        if (**found) co_return RescueHome{.locality = locality, .fid = ***found, .is_there = true};
    }
    const auto own = std::ranges::find(*homes, made.slot(), &RescuedObjects::Home::slot);
    const RescuedObjects::Home& chosen =
        own != homes->end() ? *own : (*homes)[core::mix(made.high, made.low) % homes->size()];
    const auto fid = made.moved_to(chosen.slot);
    if (!fid) {
        co_return std::unexpected(
            Error{.code = Errc::kInvalid,
                  .context = "an object of slot 65535 cannot be moved to another slot"});
    }
    co_return RescueHome{.locality = chosen.locality, .fid = *fid};
}

// The locality of a disk that takes objects of the pool.
Task<Result<std::uint32_t>> TapeLibrary::locality_of(objects::PoolId pool, store::Slot slot) {
    auto list = [pool](StagingDisks& disks) { return disks.rescued().homes(pool); };
    const auto homes = co_await homes_->call_at<std::vector<RescuedObjects::Home>>(0, &list);
    if (!homes) co_return std::unexpected(homes.error());
    const auto home = std::ranges::find(*homes, slot, &RescuedObjects::Home::slot);
    if (home != homes->end()) co_return home->locality;
    co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "a disk of the pool"});
}

Task<Result<bool>> TapeLibrary::does_give_way(objects::PoolId pool, store::Fid fid) {
    const auto locality = co_await locality_of(pool, fid.slot());
    if (!locality && locality.error().code == Errc::kNotFound) co_return false;
    if (!locality) co_return std::unexpected(locality.error());
    auto job = [fid](StagingDisks& disks) { return disks.rescued().gives_way(fid); };
    co_return co_await homes_->call_at<bool>(*locality, &job);
}

Task<Result<bool>> TapeLibrary::is_made_at_home(objects::PoolId pool, store::Fid fid) {
    const auto locality = co_await locality_of(pool, fid.slot());
    if (!locality) co_return std::unexpected(locality.error());
    auto job = [fid](StagingDisks& disks) { return disks.rescued().has_made(fid); };
    co_return co_await homes_->call_at<bool>(*locality, &job);
}

}  // namespace fopd::library

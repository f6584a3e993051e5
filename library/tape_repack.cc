// How a repack moves the live copies of a cartridge to other cartridges.
//
// While a cartridge is being repacked, its copies do not count. So an object whose bytes are on a
// disk needs a further copy, and migration writes it. Objects whose bytes are on tape only are
// recalled first, in batches. When an object has its copies on other cartridges, the record of its
// copy on this one is dropped.

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "core/ensure.h"
#include "library/pending_recall.h"
#include "library/repacking.h"
#include "library/tape_library.h"
#include "objects/fids.h"
#include "objects/object_name.h"

namespace fopd::library {

namespace {

using Kind = MediaOutcome::Kind;

// When a recall takes longer, the objects that have come back are written at once: the recall may
// wait for their space on the disk.
constexpr Duration kRecallPatience = 30s;
// The pause before the next attempt while a disk of the staging is missing.
constexpr Duration kDiskPatience = 1min;
// The time limit for the release of an object, which may be in use; also after a cancel.
constexpr Duration kLeavePatience = 1s;
constexpr Duration kLeavePatienceAtEnd = 10ms;
// The repack ends after so many batches in a row that moved no object.
constexpr std::uint32_t kFailuresInTurnMax = 3;
// Passes over the cartridge. Copies that were recorded during one pass are found by the next.
constexpr int kPassesMax = 3;
// The space for labels, headers and checksums, beside the bytes of the copies: 1/kOverheadParts of
// these, and kOverheadBytes.
constexpr std::uint64_t kOverheadParts = 64;
constexpr std::uint64_t kOverheadBytes = 16UL << 20;

// Lets an object that was only on tape leave the disk again, unless others have asked for it. Ends
// its recall if there is still one.
Task<Result<void>> take_back(StagingDisks* disks, store::Fid fid, Instant until) {
    const core::WaitOptions wait{.deadline = until};
    RecallWish wish{.fid = fid, .priority = kRepackPriority, .withdraws = true};
    auto withdrawing = disks->recall(std::move(wish), wait);
    const auto wanted = co_await std::move(withdrawing);
    if (!wanted) co_return std::unexpected(wanted.error());
    if (*wanted == RecallAsked::kWaiting) co_return Result<void>{};
    co_return co_await disks->release(fid, wait);
}

store::Cartridge label_of(const Cartridge& cartridge) {
    return {.vsn = cartridge.vsn_text(), .generation = cartridge.generation};
}

}  // namespace

// -- requests --

std::string TapeLibrary::why_not_repack(const Cartridge& cartridge) const {
    const std::string name = "cartridge " + cartridge.barcode;
    if (!is_readable(cartridge.state))
        return name + " is " + std::string(to_string(cartridge.state));
    if (cartridge.rescue == Rescue::kRunning) return name + " is being rescued";
    const auto is_its = [&](const Pool& each) { return each.options.name == cartridge.pool; };
    if (std::ranges::none_of(pools_, is_its)) return name + " belongs to no tape pool of this node";
    return {};
}

Task<Result<StagingDisks::Live>> TapeLibrary::live_on(store::Cartridge on) {
    StagingDisks::Live all;
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [on](StagingDisks& disks) { return disks.live_on(on); };
        const auto live = co_await homes_->call_at<StagingDisks::Live>(locality, &job);
        if (!live) co_return std::unexpected(live.error());
        all.copies += live->copies;
        all.bytes += live->bytes;
    }
    co_return all;
}

// The free bytes on the other cartridges of the pool and on blank ones. 0 if these are fewer
// cartridges than the pool wants copies of each object.
std::uint64_t TapeLibrary::room_beside(const Pool& pool, CartridgeId id) const {
    std::uint64_t bytes = 0;
    std::uint32_t cartridges = 0;
    for (const Cartridge& each : shelf_->table().all()) {
        const io_sched::IoMedium* const medium =
            parts_.io.media().find(io_sched::MediumId{each.id});
        if (medium == nullptr || each.id == id || medium->free_bytes == 0) continue;
        if (each.rescue == Rescue::kRunning) continue;
        const bool is_unused = options_.labels_blank && each.state == CartridgeState::kBlank &&
                               !shelf_->is_promised(each.id);
        const bool is_of_pool = medium->pool == pool.id && medium->use == io_sched::MediumUse::kAll;
        if (!is_unused && !is_of_pool) continue;
        bytes += medium->free_bytes;
        ++cartridges;
    }
    return cartridges >= pool.options.copies ? bytes : 0;
}

Task<MediaOutcome> TapeLibrary::repack(std::string barcode) {
    const Cartridge* const found = known_cartridge(barcode);
    if (found == nullptr) co_return no_such_medium(barcode);
    const CartridgeId id = found->id;
    if (repacks_.is_running(id)) co_return MediaOutcome{};
    const Cartridge cartridge = *found;
    std::string refusal = why_not_repack(cartridge);
    if (!refusal.empty()) co_return outcome(Kind::kRefused, refusal);
    const auto live = co_await live_on(label_of(cartridge));
    if (!live) {
        co_return outcome(Kind::kRefused, describe(live.error()));
    }
    const Pool& pool = *find_pool(objects::pool_id(cartridge.pool));
    const std::uint64_t needed = live->bytes + live->bytes / kOverheadParts + kOverheadBytes;
    const std::uint64_t room = room_beside(pool, id);
    if (live->copies > 0 && room < needed) {
        refusal = "pool " + cartridge.pool + " has " + std::to_string(room) +
                  " bytes of room on other cartridges, but the repack needs " +
                  std::to_string(needed);
        co_return outcome(Kind::kRefused, refusal);
    }
    // During the waits above, a repack or a format may have begun.
    const Cartridge& now = *shelf_->find(id);
    if (repacks_.is_running(id)) co_return MediaOutcome{};
    if (now.generation != cartridge.generation) {
        co_return outcome(Kind::kRefused,
                          "cartridge " + barcode + " was formatted during the request");
    }
    shelf_->set_repack(id, Repack::kRunning);
    begin_repack(id);
    const auto saved = co_await shelf_->save();
    co_return outcome(saved);
}

Task<MediaOutcome> TapeLibrary::cancel_repack(std::string barcode) {
    const Cartridge* const found = known_cartridge(barcode);
    if (found == nullptr) co_return no_such_medium(barcode);
    const CartridgeId id = found->id;
    if (found->repack == Repack::kNone) {
        co_return outcome(Kind::kRefused, "cartridge " + barcode + " has no repack to end");
    }
    if (repacks_.is_running(id)) {
        repacks_.find(id)->cancel.cancel();
        co_await repacks_.until_ended(id);
        // Another one has begun as soon as it had ended.
        if (repacks_.is_running(id)) co_return MediaOutcome{};
    }
    shelf_->set_repack(id, Repack::kNone);
    const auto saved = co_await shelf_->save();
    co_return outcome(saved);
}

std::optional<MediumWork> TapeLibrary::repack_work(std::string_view barcode) const {
    const Cartridge* const found = known_cartridge(barcode);
    const Repacking* const repack = found == nullptr ? nullptr : repacks_.find(found->id);
    if (repack == nullptr) return std::nullopt;
    return repack->work;
}

// -- the repack --

void TapeLibrary::resume_repacks() {
    std::vector<Cartridge> marked;
    for (const Cartridge& each : shelf_->table().all()) {
        const Repacking* const known = repacks_.find(each.id);
        const bool is_known = known != nullptr && (known->runs || known->cancel.cancelled());
        // It goes on when the cartridge is here again.
        if (each.repack != Repack::kRunning || is_known || is_away(each.state)) continue;
        marked.push_back(each);
    }
    for (const Cartridge& each : marked) {
        // The configuration or the cartridge may have changed since the repack began.
        const std::string refusal = why_not_repack(each);
        if (refusal.empty()) {
            begin_repack(each.id);
        } else {
            shelf_->set_repack(each.id, Repack::kPartly);
            say_repack_ended(each.barcode,
                             MediumWork{.state = MediumWork::State::kPartly, .reason = refusal});
        }
    }
}

void TapeLibrary::begin_repack(CartridgeId id) {
    if (gate_.closed()) return;
    const Cartridge& cartridge = *shelf_->find(id);
    Repacking& repack = repacks_.add(id);
    repack.on = label_of(cartridge);
    repack.pool = objects::pool_id(cartridge.pool);
    parts_.reactor.spawn(gate_, run_repack(&repack));
}

Task<void> TapeLibrary::run_repack(Repacking* repack) {
    const std::string barcode = shelf_->find(repack->id)->barcode;
    core::emit(parts_.events, core::Level::kInfo, "library.repack_began",
               {{"medium", std::string_view(barcode)}});
    const auto moved = co_await move_all(repack);
    MediumWork& work = repack->work;
    work.ended_at = parts_.reactor.now();
    if (repack->cancel.cancelled()) {
        work.state = MediumWork::State::kCancelled;
    } else {
        work.state = moved ? MediumWork::State::kDone : MediumWork::State::kPartly;
        if (!moved) work.reason = describe(moved.error());
        const bool is_there = shelf_->find(repack->id)->repack == Repack::kRunning;
        if (is_there) shelf_->set_repack(repack->id, moved ? Repack::kDone : Repack::kPartly);
        // If this is lost, the repack is run again after a restart, and finds nothing to move.
        [[maybe_unused]] const auto saved = co_await shelf_->save();
    }
    repack->runs = false;
    tell_changed();
    // A stop of the node does not end the repack: the next start resumes it.
    if (stopping_) co_return;
    say_repack_ended(barcode, work);
    ring();
}

void TapeLibrary::say_repack_ended(const std::string& barcode, const MediumWork& work) const {
    const bool is_done = work.state == MediumWork::State::kDone;
    core::emit(parts_.events, is_done ? core::Level::kInfo : core::Level::kWarn,
               "library.repack_ended",
               {{"medium", std::string_view(barcode)},
                {"result", to_string(work.state)},
                {"copies", work.copies_done},
                {"bytes", work.bytes_done},
                {"failures", work.failures},
                {"reason", std::string_view(work.reason)},
                {"seconds", in_seconds(work.ended_at - work.began_at)}});
}

Task<Result<void>> TapeLibrary::move_all(Repacking* repack) {
    const auto known = co_await until_homes_know(repack);
    if (!known) co_return known;
    MediumWork& work = repack->work;
    for (int pass = 0; pass < kPassesMax; ++pass) {
        repack->from = {};
        repack->at_end = false;
        while (!repack->at_end) {
            MoveBatch batch;
            const auto found = co_await next_batch(repack, &batch);
            if (!found) co_return found;
            const auto moved = co_await move(repack, &batch);
            if (!moved) co_return moved;
        }
        const auto recorded = co_await until_earlier_recorded(repack);
        if (!recorded) co_return recorded;
        const auto live = co_await live_when_here(repack);
        if (!live) co_return std::unexpected(live.error());
        if (live->copies == 0) co_return Result<void>{};
    }
    const char* const why = work.failures > 0
                                ? "some copies could not be moved"
                                : "live copies are on the cartridge again after each pass";
    co_return std::unexpected(Error{.code = Errc::kIo, .context = why});
}

// Waits until all homes know that the cartridge is being repacked, so that its copies do not count.
Task<Result<void>> TapeLibrary::until_homes_know(Repacking* repack) {
    const std::uint64_t changes = shelf_->changes();
    ring();
    while (media_shown_ < changes) {
        const auto woken = co_await changed_.wait({.cancel = &repack->cancel});
        if (!woken) co_return woken;
    }
    const auto live = co_await live_when_here(repack);
    if (!live) co_return std::unexpected(live.error());
    repack->work.copies = live->copies;
    repack->work.bytes = live->bytes;
    co_return Result<void>{};
}

// Batches that had begun before the repack may write to the cartridge yet; later ones do not.
Task<Result<void>> TapeLibrary::until_earlier_recorded(Repacking* repack) {
    const auto is_earlier = [&](const StagedObjects::GroupKey& key) {
        return key.pool == repack->pool && turns_.at(key).begun_at <= repack->work.began_at;
    };
    while (std::ranges::any_of(writing_, is_earlier)) {
        const auto woken = co_await changed_.wait({.cancel = &repack->cancel});
        if (!woken) co_return woken;
    }
    co_return Result<void>{};
}

// Waits for the disks that are not here.
Task<Result<StagingDisks::Live>> TapeLibrary::live_when_here(Repacking* repack) {
    for (;;) {
        const auto live = co_await live_on(repack->on);
        if (live || live.error().code != Errc::kBusy) co_return live;
        const auto slept = co_await parts_.reactor.sleep_for(kDiskPatience, &repack->cancel);
        if (!slept) co_return std::unexpected(slept.error());
    }
}

// The live copies from a position on, in the order of the tape, up to the position to which the
// lists of all homes are complete.
Task<Result<TapeLibrary::CopyPage>> TapeLibrary::copies_from(store::Cartridge on,
                                                             store::CopyPosition from) {
    CopyPage page;
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [on, from](StagingDisks& disks) { return disks.list_moves(on, from); };
        const auto moves = co_await homes_->call_at<StagingDisks::Moves>(locality, &job);
        if (!moves) co_return std::unexpected(moves.error());
        for (const StagingDisks::Move& each : moves->moves) {
            page.items.push_back({.move = each, .locality = locality});
        }
        page.room.insert(moves->room.begin(), moves->room.end());
        if (moves->known_to) {
            page.known_to = std::min(page.known_to.value_or(*moves->known_to), *moves->known_to);
        }
    }
    std::erase_if(page.items, [&page](const MoveBatch::Item& each) {
        return page.known_to && *page.known_to < each.move.copy.position;
    });
    std::ranges::sort(page.items, {},
                      [](const MoveBatch::Item& each) { return each.move.copy.position; });
    co_return page;
}

// The next objects in the order of the tape, as many as have room on the disks at the same time.
Task<Result<void>> TapeLibrary::next_batch(Repacking* repack, MoveBatch* batch) {
    auto found = co_await copies_from(repack->on, repack->from);
    while (!found && found.error().code == Errc::kBusy) {
        const auto slept = co_await parts_.reactor.sleep_for(kDiskPatience, &repack->cancel);
        if (!slept) co_return slept;
        found = co_await copies_from(repack->on, repack->from);
    }
    if (!found) co_return std::unexpected(found.error());
    CopyPage& page = *found;
    const Pool& pool = *find_pool(repack->pool);
    std::uint64_t bytes = 0;
    std::map<store::Slot, std::uint64_t> taken;
    std::optional<store::CopyPosition> last;
    bool has_all = true;
    for (const MoveBatch::Item& each : page.items) {
        const StagingDisks::Move& move = each.move;
        const store::Slot slot = move.copy.fid.slot();
        const bool is_new =
            batch->find(move.copy.fid) == nullptr && !repack->failed.contains(move.copy.fid);
        const bool comes = is_new && !move.is_on_disk && !move.is_done;
        const bool is_full = bytes + move.object_bytes > pool.options.migrate_bytes ||
                             (comes && taken[slot] + move.object_bytes > page.room[slot]) ||
                             batch->items.size() >= pool.options.migrate_files;
        if (is_new && is_full && !batch->items.empty()) {
            has_all = false;
            break;
        }
        last = move.copy.position;
        if (!is_new) continue;
        bytes += move.object_bytes;
        if (comes) taken[slot] += move.object_bytes;
        batch->items.push_back(each);
    }
    if (has_all) last = page.known_to;
    repack->at_end = has_all && !page.known_to;
    if (last) {
        repack->from = *last;
        ++repack->from.member;
    }
    co_return Result<void>{};
}

Task<Result<void>> TapeLibrary::move(Repacking* repack, MoveBatch* batch) {
    if (batch->items.empty()) co_return Result<void>{};
    const auto back = co_await bring_back(repack, batch);
    // When the node has been started again, a repack goes on with the recalls that it has.
    if (!back && stopping_) co_return back;
    Result<void> copied = back;
    if (back) copied = co_await wait_for_moves(repack, batch);
    const auto gone = co_await let_go(repack, batch);
    repack->asked_for.clear();
    if (!copied) co_return copied;
    co_return gone;
}

Task<void> TapeLibrary::fail_move(Repacking* repack, MoveBatch* batch, store::Fid fid,
                                  std::string reason) {
    MoveBatch::Item* const item = batch->find(fid);
    item->has_failed = true;
    if (!repack->failed.insert(fid).second) co_return;
    auto job = [fid](StagingDisks& disks) { return disks.name_of(fid); };
    const auto name = co_await homes_->call_at<std::string>(item->locality, &job);
    MediumWork::Failure failure{.fid = fid,
                                .file = item->move.copy.position.file,
                                .name = name.value_or(std::string()),
                                .reason = std::move(reason)};
    const std::string barcode = shelf_->find(repack->id)->barcode;
    const std::string object = objects::format_fid(fid);
    core::emit(parts_.events, core::Level::kError, "library.object_not_moved",
               {{"medium", std::string_view(barcode)},
                {"file", std::uint64_t{failure.file}},
                {"object", std::string_view(object)},
                {"name", std::string_view(failure.name)},
                {"reason", std::string_view(failure.reason)}});
    figures_.works.unmoved.add(1);
    repack->work.add(std::move(failure));
}

// Recalls the objects whose bytes are on tape only, and waits for these recalls.
Task<Result<void>> TapeLibrary::bring_back(Repacking* repack, MoveBatch* batch) {
    for (std::size_t i = 0; i < batch->items.size(); ++i) {
        const MoveBatch::Item item = batch->items[i];
        if (item.move.is_on_disk || item.move.is_done) continue;
        if (repack->cancel.cancelled()) {
            co_return std::unexpected(Error{.code = Errc::kCancelled, .context = "the repack"});
        }
        const store::Fid fid = item.move.copy.fid;
        repack->asked_for.insert(fid);
        const RecallWish wish{.fid = fid, .priority = kRepackPriority};
        const Instant until = after(parts_.reactor.now(), kRecallPatience);
        auto job = [wish, until](StagingDisks& disks) {
            return disks.recall(wish, {.deadline = until});
        };
        const auto asked = co_await homes_->run_at<RecallAsked>(item.locality, &job);
        if (asked) {
            batch->items[i].is_recalled = *asked == RecallAsked::kWaiting;
            continue;
        }
        if (asked.error().code == Errc::kClosed) co_return std::unexpected(asked.error());
        if (asked.error().code == Errc::kNotFound) continue;  // The object was removed.
        co_await fail_move(repack, batch, fid, describe(asked.error()));
    }
    Pool& pool = *find_pool(repack->pool);
    bool writes = false;
    Result<void> result{};
    for (std::size_t i = 0; i < batch->items.size() && result; ++i) {
        const MoveBatch::Item item = batch->items[i];
        if (!item.is_recalled) continue;
        const auto end = co_await end_of_recall(repack, item.locality, item.move.copy.fid, &writes);
        if (!end) {
            result = std::unexpected(end.error());
        } else if (end->how == RecallEnd::How::kFailed) {
            co_await fail_move(repack, batch, item.move.copy.fid, end->reason);
        } else if (end->how == RecallEnd::How::kCancelled) {
            co_await fail_move(repack, batch, item.move.copy.fid, "its recall was cancelled");
        }
    }
    if (writes) --pool.moves;
    co_return result;
}

// Waits for a recall. The disk may have no room for it until objects that have come back are
// written; `*writes` says that this batch has asked for that.
Task<Result<RecallEnd>> TapeLibrary::end_of_recall(Repacking* repack, std::uint32_t locality,
                                                   store::Fid fid, bool* writes) {
    for (;;) {
        const std::uint64_t seen = changes_;
        // The deadline has passed: the call does not wait.
        auto job = [fid](StagingDisks& disks) {
            return disks.wait_for_recall(fid, {}, {.deadline = Instant::min()});
        };
        auto end = co_await homes_->run_at<RecallEnd>(locality, &job);
        if (end || end.error().code != Errc::kTimedOut) co_return end;
        if (changes_ != seen) continue;
        const Instant until = after(parts_.reactor.now(), kRecallPatience);
        const auto woken = co_await changed_.wait({.deadline = until, .cancel = &repack->cancel});
        if (woken) continue;
        if (woken.error().code != Errc::kTimedOut) co_return std::unexpected(woken.error());
        if (std::exchange(*writes, true)) continue;
        ++find_pool(repack->pool)->moves;
        ring();
    }
}

// Waits until all objects of the batch have their copies on other cartridges.
Task<Result<void>> TapeLibrary::wait_for_moves(Repacking* repack, MoveBatch* batch) {
    Pool& pool = *find_pool(repack->pool);
    Left left(homes_->count());
    std::size_t count = 0;
    for (const MoveBatch::Item& each : batch->items) {
        if (each.has_failed || each.move.is_done) continue;
        left[each.locality].push_back(each.move.copy.fid);
        ++count;
    }
    if (count == 0) co_return Result<void>{};
    ++pool.moves;
    const core::WaitOptions wait{.cancel = &repack->cancel};
    const auto copied = co_await wait_for_copies(&pool, &left, FewDrives::kWait, wait);
    --pool.moves;
    if (copied) {
        repack->failures_in_turn = 0;
        co_return Result<void>{};
    }
    if (copied.error().code != Errc::kIo) co_return copied;
    std::size_t failed = 0;
    for (const std::vector<store::Fid>& fids : left) {
        for (const store::Fid fid : fids) {
            ++failed;
            co_await fail_move(repack, batch, fid, "it could not be written to another cartridge");
        }
    }
    repack->failures_in_turn = failed < count ? 0 : repack->failures_in_turn + 1;
    if (room_beside(pool, repack->id) == 0) {
        co_return std::unexpected(
            Error{.code = Errc::kNoSpace, .context = "no other cartridge of the pool has room"});
    }
    if (repack->failures_in_turn >= kFailuresInTurnMax) {
        co_return std::unexpected(
            Error{.code = Errc::kIo, .context = "writes to other cartridges fail"});
    }
    co_return Result<void>{};
}

// Drops the records of copies on this cartridge for objects that have their copies on other ones,
// and releases the objects that this batch has recalled.
Task<Result<void>> TapeLibrary::let_go(Repacking* repack, MoveBatch* batch) {
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        std::vector<store::Fid> all;
        std::vector<store::Fid> recalled;
        for (const MoveBatch::Item& each : batch->items) {
            if (each.locality != locality) continue;
            all.push_back(each.move.copy.fid);
            if (each.is_recalled && !each.has_failed) recalled.push_back(each.move.copy.fid);
        }
        auto drop = [on = repack->on, &all](StagingDisks& disks) {
            return disks.drop_moved(on, std::move(all));
        };
        const auto dropped = co_await homes_->run_at<void>(locality, &drop);
        if (!dropped) co_return dropped;
        for (const store::Fid fid : recalled) co_await let_leave(repack, locality, fid);
    }
    const auto live = co_await live_on(repack->on);
    // Where a disk is not here, it is counted later.
    if (!live && live.error().code == Errc::kBusy) co_return Result<void>{};
    if (!live) co_return std::unexpected(live.error());
    MediumWork& work = repack->work;
    const std::uint64_t copies_before = work.copies_done;
    const std::uint64_t bytes_before = work.bytes_done;
    work.copies_done = work.copies - std::min(work.copies, live->copies);
    work.bytes_done = work.bytes - std::min(work.bytes, live->bytes);
    figures_.works.moved_copies.add(work.copies_done - std::min(work.copies_done, copies_before));
    figures_.works.moved_bytes.add(work.bytes_done - std::min(work.bytes_done, bytes_before));
    co_return Result<void>{};
}

Task<void> TapeLibrary::let_leave(Repacking* repack, std::uint32_t locality, store::Fid fid) {
    // Another repack may have the object in its batch.
    const bool is_needed = repacks_.any_of(
        [&](const Repacking& each) { return &each != repack && each.asked_for.contains(fid); });
    if (is_needed) co_return;
    const Duration patience = repack->cancel.cancelled() ? kLeavePatienceAtEnd : kLeavePatience;
    const Instant until = after(parts_.reactor.now(), patience);
    auto job = [fid, until](StagingDisks& disks) { return take_back(&disks, fid, until); };
    // One that is in use, pinned, or not copied yet leaves later, as others do.
    [[maybe_unused]] const auto left = co_await homes_->run_at<void>(locality, &job);
}

}  // namespace fopd::library

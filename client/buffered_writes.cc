// SPDX-License-Identifier: BSD-2-Clause
#include "client/buffered_writes.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "client/chunks.h"
#include "core/ensure.h"
#include "fop/range.h"

namespace fopd::client {

namespace {

// Whether the server may accept the same write later. A write without an answer was not refused,
// and a missing disk may come back. If the disk is written off instead, the next sync reports the
// loss.
bool may_pass(const Problem& problem) {
    if (!problem.answered) return true;
    switch (problem.status) {
        case fop::Status::kTryAgain:
        case fop::Status::kBusy:
        case fop::Status::kStaging:
        case fop::Status::kStagingFull:
        case fop::Status::kTimedOut:
        case fop::Status::kCancelled:
        case fop::Status::kOutcomeUnknown:
        case fop::Status::kMediumMissing: return true;
        default: return false;
    }
}

std::string why_lost(const Problem& problem) {
    if (problem.status == fop::Status::kNotFound) return "the object was removed since";
    return problem.words;
}

Outcome<void> lost_problem(LostWrite lost, std::string words) {
    return std::unexpected(
        Problem{.status = fop::Status::kLost, .words = std::move(words), .lost = std::move(lost)});
}

class WriteChunks final : public Chunks {
public:
    // `lost_in`: the incarnation that has lost the bytes, if they are written again; 0 otherwise.
    WriteChunks(Slots& slots, HeldWrites& held, const WriteWish& wish, std::uint64_t lost_in,
                Wait wait)
        : Chunks(slots, {.offset = wish.offset, .length = wish.from.size()}, wait),
          held_(held),
          wish_(wish),
          lost_in_(lost_in) {}
    // The newest incarnation that a reply has shown.
    std::uint64_t incarnation() const { return incarnation_; }

private:
    Task<Outcome<void>> move_chunk(std::size_t index) override {
        const std::array ranges{range_of(index)};
        const auto from = memory_of(wish_.from, index);
        const auto checksums = checksums_of(ranges[0], from);
        const fop::Write body{.fid = wish_.fid,
                              .ranges = ranges,
                              .checksums = checksums,
                              .source = {},
                              .durability = wish_.durability,
                              .lost_in = lost_in_};
        const std::uint16_t slot = wish_.fid.slot();
        const auto answer = co_await slots_.ask_slot(slot, slots_.request(body, wait_), from);
        if (!answer) co_return std::unexpected(answer.error());
        const auto* const reply = body_of<fop::WriteReply>(*answer);
        if (reply == nullptr || reply->changed.receipt.slot != slot) co_return nonsense();
        const fop::Receipt& receipt = reply->changed.receipt;
        if (wish_.durability == fop::Durability::kBuffered) {
            held_.add(wish_.fid, ranges[0].offset, from, receipt);
        } else {
            held_.cut(wish_.fid, ranges[0], receipt);
            held_.release(receipt);
        }
        incarnation_ = std::max(incarnation_, receipt.incarnation);
        co_return {};
    }

    HeldWrites& held_;
    const WriteWish wish_;
    const std::uint64_t lost_in_;
    std::uint64_t incarnation_ = 0;
};

}  // namespace

// -- changes --

Task<Outcome<void>> BufferedWrites::write(WriteWish wish, Wait wait) {
    const std::uint64_t length = wish.from.size();
    const auto sound = fop::check_range({.offset = wish.offset, .length = length});
    if (!sound) co_return failed(fop::Status::kMalformed, sound.error().context);
    if (wish.from.empty()) co_return {};
    if (wish.durability == fop::Durability::kBuffered) {
        const std::uint64_t held_bytes_max = slots_.options().held_bytes_max;
        if (length > held_bytes_max) {
            wish.durability = fop::Durability::kDurable;  // No copy of it could be held.
        } else if (held_.bytes() + length > held_bytes_max) {
            const auto synced = co_await make_durable({}, wait);
            // Writes that cannot be made durable now stay in memory, also those of other objects:
            // there is no room for a copy of this one.
            if (!synced) wish.durability = fop::Durability::kDurable;
        }
    }
    WriteChunks chunks(slots_, held_, wish, 0, wait);
    auto begun = co_await begin_change(wish.fid, wait);
    if (!begun) co_return begun;
    auto moved = co_await chunks.move();
    end_change(wish.fid);
    if (moved) co_await catch_up_others(wish.fid.slot(), chunks.incarnation(), wait);
    co_return moved;
}

Task<Outcome<fabric::Answer>> BufferedWrites::change(fop::Fid fid, fabric::CallRequest request,
                                                     std::span<const std::byte> data) {
    auto begun =
        co_await begin_change(fid, {.deadline = request.deadline, .cancel = request.cancel});
    if (!begun) co_return std::unexpected(std::move(begun.error()));
    auto answer = co_await slots_.ask_slot(fid.slot(), request, data);
    if (answer) {
        const fop::Receipt* const receipt = receipt_of(*answer);
        if (receipt != nullptr && receipt->slot == fid.slot()) {
            held_.release(*receipt);
            co_return answer;
        }
        answer = nonsense();
    }
    end_change(fid);
    co_return answer;
}

bool BufferedWrites::writes_again(const fop::Fid& fid) const {
    const auto use = uses_.find(fid);
    return use != uses_.end() && use->second.writing_again;
}

Task<Outcome<void>> BufferedWrites::wait_for_writing_again(fop::Fid fid, Wait wait) {
    while (writes_again(fid)) {
        const auto woken = co_await changed_.wait(wait);
        if (!woken) co_return failed(woken.error());
    }
    co_return {};
}

// Changes of an object run beside each other, but not beside writing it again.
Task<Outcome<void>> BufferedWrites::begin_change(fop::Fid fid, Wait wait) {
    auto waited = co_await wait_for_writing_again(fid, wait);
    if (!waited) co_return waited;
    auto reported = report_lost(fid);
    if (reported) ++uses_[fid].changes;
    co_return reported;
}

void BufferedWrites::end_change(const fop::Fid& fid) {
    const auto use = uses_.find(fid);
    ENSURE(use != uses_.end());
    ENSURE(use->second.changes > 0);
    if (--use->second.changes > 0) return;
    if (!use->second.writing_again) uses_.erase(use);
    changed_.wake_all();
}

// -- reporting --

Outcome<void> BufferedWrites::report_lost(fop::Fid fid) {
    auto lost = lost_.take(fid);
    if (!lost) return {};
    std::string words = describe(*lost);
    return lost_problem(std::move(*lost), std::move(words));
}

// Reports the lost writes of one object per call, because a message is short.
Outcome<void> BufferedWrites::report_all_lost() {
    auto lost = lost_.take_first();
    if (!lost && lost_.empty()) return {};
    if (!lost) {
        return failed(fop::Status::kLost,
                      std::to_string(lost_.take_unnamed()) + " more buffered writes are lost");
    }
    std::string words = describe(*lost);
    if (!lost_.empty()) words += "; other buffered writes are lost, too";
    return lost_problem(std::move(*lost), std::move(words));
}

// -- durability, and writing again --

Task<Outcome<bool>> BufferedWrites::catch_up(fop::Fid fid, std::uint64_t incarnation, Wait wait) {
    if (!held_.has_other(fid, incarnation)) co_return false;
    auto durable = co_await make_durable({.fid = fid}, wait);
    if (!durable) co_return std::unexpected(std::move(durable.error()));
    co_return true;
}

Task<void> BufferedWrites::catch_up_others(std::uint16_t slot, std::uint64_t incarnation,
                                           Wait wait) {
    if (!held_.has_other(slot, incarnation)) co_return;
    // The call has its outcome: it does not wait for ever to return it.
    wait.deadline =
        std::min(wait.deadline, after(slots_.reactor().now(), slots_.options().patience));
    // A failure is reported by the next call about the object that it concerns.
    [[maybe_unused]] const auto durable = co_await make_durable({.slot = slot}, wait);
}

Task<Outcome<void>> BufferedWrites::make_durable(HeldScope scope, Wait wait) {
    for (;;) {
        std::vector<fop::Receipt> behind;
        auto synced = co_await ask_sync_of_all(scope, &behind, wait);
        if (behind.empty()) co_return synced;
        auto again = co_await write_again(std::move(behind), scope, wait);
        if (!synced) co_return synced;
        if (!again) co_return again;
    }
}

// Asks the localities to make the held writes durable. Adds the last durable receipt of each
// incarnation that has lost later ones.
Task<Outcome<void>> BufferedWrites::ask_sync_of_all(HeldScope scope,
                                                    std::vector<fop::Receipt>* behind, Wait wait) {
    const std::vector<fop::Receipt> asked = held_.receipts(scope);
    if (asked.empty()) co_return {};
    auto loaded = co_await slots_.load(wait);
    if (!loaded) co_return loaded;
    std::map<std::uint16_t, std::vector<fop::Receipt>> by_locality;
    for (const fop::Receipt& each : asked) {
        by_locality[slots_.locality_of(each.slot)].push_back(each);
    }
    Outcome<void> all;
    for (const auto& each : by_locality) {
        const std::vector<fop::Receipt>& receipts = each.second;
        for (std::size_t first = 0; first < receipts.size(); first += fop::kReceiptsMax) {
            const auto part = std::span(receipts).subspan(first);
            const std::size_t count = std::min(part.size(), fop::kReceiptsMax);
            std::vector<fop::Receipt> some(part.begin(),
                                           part.begin() + static_cast<std::ptrdiff_t>(count));
            auto synced = co_await ask_sync(std::move(some), behind, wait);
            if (all && !synced) all = std::move(synced);
        }
    }
    co_return all;
}

// Asks one locality to make the writes up to these receipts durable, and releases those that are.
// Writes to a disk that was written off are given up, because there is no disk to write them to
// again.
Task<Outcome<void>> BufferedWrites::ask_sync(std::vector<fop::Receipt> receipts,
                                             std::vector<fop::Receipt>* behind, Wait wait) {
    const fop::Sync body{.receipts = receipts};
    const std::uint16_t slot = receipts.front().slot;
    const auto answer = co_await slots_.call_slot(slot, slots_.request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status != fop::Status::kDone && answer->status != fop::Status::kLost) {
        co_return refused(*answer);
    }
    const auto* const reply = body_of<fop::SyncReply>(*answer);
    if (reply == nullptr || reply->receipts.size() != receipts.size()) co_return nonsense();
    for (std::size_t i = 0; i < receipts.size(); ++i) {
        const fop::Receipt& now = reply->receipts[i];
        fop::Receipt durable = receipts[i];
        if (now.slot != durable.slot) co_return nonsense();
        if (now.incarnation == 0) {
            give_up_slot(durable.slot, durable.incarnation);
            continue;
        }
        const bool is_behind = now.seq < durable.seq;
        durable.seq = std::min(durable.seq, now.seq);
        held_.release(durable);
        if (is_behind) behind->push_back(durable);
    }
    co_return {};
}

void BufferedWrites::give_up_slot(std::uint16_t slot, std::uint64_t incarnation) {
    const fop::Receipt none{.incarnation = incarnation, .seq = 0, .slot = slot};
    for (const fop::Fid& fid : held_.objects_behind(none)) {
        while (const auto part = held_.part_behind(none, fid)) {
            give_up(*part, "its disk was written off");
        }
    }
}

void BufferedWrites::give_up(const HeldWrites::Part& part, std::string_view why) {
    lost_.add(part.fid, part.range(), why);
    held_.drop(part.fid, part.range());
}

// A failure with one object does not stop the others, unless it shows that the server takes
// nothing: they would wait for it as long again.
Task<Outcome<void>> BufferedWrites::write_again(std::vector<fop::Receipt> durable, HeldScope scope,
                                                Wait wait) {
    Outcome<void> all;
    for (const fop::Receipt& each : durable) {
        const std::vector<fop::Fid> objects = held_.objects_behind(each, scope);
        for (const fop::Fid& fid : objects) {
            auto written = co_await write_object_again(fid, each, wait);
            if (written) continue;
            if (all) all = written;
            if (written.error().status == fop::Status::kTryAgain) co_return all;
        }
    }
    co_return all;
}

Task<Outcome<void>> BufferedWrites::write_object_again(fop::Fid fid, fop::Receipt durable,
                                                       Wait wait) {
    auto written = co_await wait_for_writing_again(fid, wait);
    if (!written) co_return written;
    uses_[fid].writing_again = true;
    while (uses_[fid].changes > 0 && written) {
        const auto woken = co_await changed_.wait(wait);
        if (!woken) written = failed(woken.error());
    }
    if (written) written = co_await write_parts_again(fid, durable, wait);
    uses_[fid].writing_again = false;
    if (uses_[fid].changes == 0) uses_.erase(fid);
    changed_.wake_all();
    co_return written;
}

Task<Outcome<void>> BufferedWrites::write_parts_again(fop::Fid fid, fop::Receipt durable,
                                                      Wait wait) {
    std::uint64_t offset = 0;
    for (;;) {
        const auto part = held_.part_behind(durable, fid, offset);
        if (!part) co_return {};
        offset = part->range().end();
        WriteChunks chunks(slots_, held_,
                           {.fid = fid,
                            .offset = part->offset,
                            .from = part->bytes,
                            .durability = fop::Durability::kBuffered},
                           durable.incarnation, wait);
        auto moved = co_await chunks.move();
        // A reply of the incarnation that has lost the bytes would repeat this for ever.
        if (moved && chunks.incarnation() == durable.incarnation) co_return nonsense();
        if (moved) continue;
        if (may_pass(moved.error())) co_return moved;
        give_up(*part, why_lost(moved.error()));
    }
}

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#include "client/buffered_writes.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "client/pieces.h"
#include "core/ensure.h"
#include "fop/range.h"

namespace fopd::client {

namespace {

// The server will never accept the write again: its bytes are lost.
bool is_lost_for_good(const Problem& problem) {
    return problem.answered &&
           (problem.status == fop::Status::kLost || problem.status == fop::Status::kNotFound ||
            problem.status == fop::Status::kDenied);
}

std::string why_lost(const Problem& problem) {
    if (problem.status == fop::Status::kNotFound) return "the object was removed since";
    return problem.words;
}

Outcome<void> lost_problem(LostWrite lost, std::string words) {
    return std::unexpected(
        Problem{.status = fop::Status::kLost, .words = std::move(words), .lost = std::move(lost)});
}

class WritePieces final : public Pieces {
public:
    // `lost_in`: the incarnation that has lost the bytes, if they are written again; 0 otherwise.
    WritePieces(Slots& slots, HeldWrites& held, const WriteWish& wish, std::uint64_t lost_in,
                Wait wait)
        : Pieces(slots, {.offset = wish.offset, .length = wish.from.size()}, wait),
          held_(held),
          wish_(wish),
          lost_in_(lost_in) {}
    // The newest incarnation that a reply has shown.
    std::uint64_t incarnation() const { return incarnation_; }

private:
    Task<Outcome<void>> move_piece(std::size_t index) override {
        const std::array ranges{range_of(index)};
        const auto from = part_of(wish_.from, index);
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
            auto synced = co_await make_durable(wait);
            if (!synced) co_return synced;
        }
    }
    WritePieces pieces(slots_, held_, wish, 0, wait);
    auto begun = co_await begin_change(wish.fid, wait);
    if (!begun) co_return begun;
    auto moved = co_await pieces.move();
    end_change();
    if (!moved) co_return moved;
    co_return co_await catch_up(wish.fid.slot(), pieces.incarnation(), wait);
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
    end_change();
    co_return answer;
}

Task<Outcome<void>> BufferedWrites::wait_for_writing_again(Wait wait) {
    while (writing_again_) {
        const auto woken = co_await changed_.wait(wait);
        if (!woken) co_return failed(woken.error());
    }
    co_return {};
}

// Changes run beside each other, but not beside writing again.
Task<Outcome<void>> BufferedWrites::begin_change(fop::Fid fid, Wait wait) {
    auto waited = co_await wait_for_writing_again(wait);
    if (!waited) co_return waited;
    auto reported = report_lost(fid);
    if (reported) ++changes_;
    co_return reported;
}

void BufferedWrites::end_change() {
    ENSURE(changes_ > 0);
    if (--changes_ == 0) changed_.wake_all();
}

// -- reporting --

Outcome<void> BufferedWrites::report_lost(fop::Fid fid) {
    auto lost = lost_.take(fid);
    if (!lost) return {};
    std::string words = describe(*lost);
    return lost_problem(std::move(*lost), std::move(words));
}

// Reports one object at a time: a problem has room for few words.
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

Task<Outcome<void>> BufferedWrites::catch_up(std::uint16_t slot, std::uint64_t incarnation,
                                             Wait wait) {
    if (!held_.has_other(slot, incarnation)) co_return {};
    co_return co_await make_durable(wait);
}

Task<Outcome<void>> BufferedWrites::make_durable(Wait wait) {
    for (;;) {
        const std::vector<fop::Receipt> asked = held_.receipts();
        if (asked.empty()) co_return {};
        auto loaded = co_await slots_.load(wait);
        if (!loaded) co_return loaded;
        std::map<std::uint16_t, std::vector<fop::Receipt>> by_locality;
        for (const fop::Receipt& each : asked) {
            by_locality[slots_.locality_of(each.slot)].push_back(each);
        }
        std::vector<fop::Receipt> durable;
        for (const auto& each : by_locality) {
            const std::vector<fop::Receipt>& receipts = each.second;
            for (std::size_t first = 0; first < receipts.size(); first += fop::kReceiptsMax) {
                const auto part = std::span(receipts).subspan(first);
                const std::size_t count = std::min(part.size(), fop::kReceiptsMax);
                std::vector<fop::Receipt> some(part.begin(),
                                               part.begin() + static_cast<std::ptrdiff_t>(count));
                auto behind = co_await ask_sync(std::move(some), wait);
                if (!behind) co_return std::unexpected(std::move(behind.error()));
                durable.insert(durable.end(), behind->begin(), behind->end());
            }
        }
        if (durable.empty()) co_return {};
        auto again = co_await write_again(std::move(durable), wait);
        if (!again) co_return again;
    }
}

// Asks one locality to make the writes up to these receipts durable, and releases those that are.
// Returns the last durable receipt of each incarnation that has lost later ones. The writes of a
// disk that is gone for good are given up: they have no place to be written again.
Task<Outcome<std::vector<fop::Receipt>>> BufferedWrites::ask_sync(
    std::vector<fop::Receipt> receipts, Wait wait) {
    const fop::Sync body{.receipts = receipts};
    const std::uint16_t slot = receipts.front().slot;
    const auto answer = co_await slots_.call_slot(slot, slots_.request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status != fop::Status::kDone && answer->status != fop::Status::kLost) {
        co_return refused(*answer);
    }
    const auto* const reply = body_of<fop::SyncReply>(*answer);
    if (reply == nullptr || reply->receipts.size() != receipts.size()) co_return nonsense();
    std::vector<fop::Receipt> behind;
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
        if (is_behind) behind.push_back(durable);
    }
    co_return behind;
}

void BufferedWrites::give_up_slot(std::uint16_t slot, std::uint64_t incarnation) {
    const fop::Receipt none{.incarnation = incarnation, .seq = 0, .slot = slot};
    while (const auto piece = held_.first_behind(none)) {
        lost_.add(piece->fid, piece->range(), "its disk was written off");
        held_.drop(piece->fid, piece->range());
    }
}

Task<Outcome<void>> BufferedWrites::write_again(std::vector<fop::Receipt> durable, Wait wait) {
    auto written = co_await wait_for_writing_again(wait);
    if (!written) co_return written;
    writing_again_ = true;
    while (changes_ > 0 && written) {
        const auto woken = co_await changed_.wait(wait);
        if (!woken) written = failed(woken.error());
    }
    if (written) written = co_await write_pieces_again(std::move(durable), wait);
    writing_again_ = false;
    changed_.wake_all();
    co_return written;
}

Task<Outcome<void>> BufferedWrites::write_pieces_again(std::vector<fop::Receipt> durable,
                                                       Wait wait) {
    for (const fop::Receipt& each : durable) {
        for (;;) {
            const auto piece = held_.first_behind(each);
            if (!piece) break;
            WritePieces pieces(slots_, held_,
                               {.fid = piece->fid,
                                .offset = piece->offset,
                                .from = piece->bytes,
                                .durability = fop::Durability::kBuffered},
                               each.incarnation, wait);
            auto moved = co_await pieces.move();
            // A reply of the incarnation that has lost the bytes would repeat this for ever.
            if (moved && pieces.incarnation() == each.incarnation) co_return nonsense();
            if (moved) continue;
            if (!is_lost_for_good(moved.error())) co_return moved;
            lost_.add(piece->fid, piece->range(), why_lost(moved.error()));
            held_.drop(piece->fid, piece->range());
        }
    }
    co_return {};
}

}  // namespace fopd::client

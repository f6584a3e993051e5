// SPDX-License-Identifier: BSD-2-Clause
#include "client/uploads.h"

#include <algorithm>
#include <array>
#include <utility>

#include "client/chunks.h"
#include "core/ensure.h"
#include "fop/range.h"

namespace fopd::client {

namespace {

// How often an upload is begun again because the server has forgotten it, or committed again after
// lost parts were sent again.
constexpr int kUploadTries = 4;
constexpr Duration kAbortMax = 5s;

// A part of an upload. The results are the incarnations in which the server took the chunks; 0: the
// chunk is still to be sent.
class UploadChunks final : public Chunks {
public:
    UploadChunks(Slots& slots, const Uploads::Part& part, Wait wait)
        : Chunks(slots, {.offset = part.offset, .length = part.from.size()}, wait), part_(part) {}

    fop::Receipt receipt() const {
        fop::Receipt receipt{.incarnation = incarnation_, .seq = seq_};
        receipt.slot = part_.fid.slot();
        for (const std::uint64_t each : results_) {
            receipt.incarnation = std::min(receipt.incarnation, each);
        }
        return receipt;
    }
    fop::Fid fid() const { return part_.fid; }
    // Sends all chunks to this upload.
    void restart(fop::Fid fid) {
        part_.fid = fid;
        std::ranges::fill(results_, 0);
    }
    // The other chunks are lost.
    void keep_only(std::uint64_t incarnation) {
        std::ranges::replace_if(
            results_, [incarnation](auto each) { return each != incarnation; }, 0);
    }

private:
    Task<Outcome<void>> move_chunk(std::size_t index) override {
        if (results_[index] != 0) co_return {};
        const fop::Range range = range_of(index);
        const auto from = memory_of(part_.from, index);
        const auto checksums = checksums_of(range, from);
        const fop::UploadWrite body{.fid = part_.fid, .range = range, .checksums = checksums};
        const auto answer =
            co_await slots_.ask_slot(part_.fid.slot(), slots_.request(body, wait_), from);
        if (!answer) co_return std::unexpected(answer.error());
        const auto* const reply = body_of<fop::UploadWriteReply>(*answer);
        if (reply == nullptr || reply->receipt.incarnation == 0) co_return nonsense();
        results_[index] = reply->receipt.incarnation;
        incarnation_ = std::max(incarnation_, reply->receipt.incarnation);
        seq_ = std::max(seq_, reply->receipt.seq);
        co_return {};
    }

    Uploads::Part part_;
    std::uint64_t incarnation_ = 0;  // The newest that a reply has shown.
    std::uint64_t seq_ = 0;
};

}  // namespace

Task<Outcome<fop::Fid>> Uploads::put(NewObject object, std::span<const std::byte> from, Wait wait) {
    const Slots::Attempt attempt = [&](std::uint16_t slot) {
        return put_at({.slot = slot, .object = &object, .size_bytes = from.size()}, from, wait);
    };
    std::string pool = object.pool;
    co_return co_await slots_.make_object(std::move(pool), &attempt, wait);
}

// A server that has started anew may have forgotten the upload, or lost acknowledged chunks.
Task<Outcome<fop::Fid>> Uploads::put_at(Beginning beginning, std::span<const std::byte> from,
                                        Wait wait) {
    UploadChunks chunks(slots_, {.from = from}, wait);
    Outcome<void> done;
    for (int tries = 0; tries < kUploadTries; ++tries) {
        if (!chunks.fid().is_set()) {
            auto begun = co_await begin_at(beginning, wait);
            if (!begun) co_return begun;
            chunks.restart(*begun);
        }
        done = co_await chunks.move();
        if (done) {
            auto ended = co_await commit(chunks.fid(), from.size(), wait);
            if (ended && ended->done) co_return chunks.fid();
            if (ended) {
                chunks.keep_only(ended->incarnation);
                done = failed(fop::Status::kLost, "the server has lost the data several times");
                continue;
            }
            done = std::unexpected(std::move(ended.error()));
        }
        if (done.error().status != fop::Status::kNotFound) break;
        chunks.restart({});
    }
    if (chunks.fid().is_set()) co_await abort(chunks.fid());
    co_return std::unexpected(std::move(done.error()));
}

Task<Outcome<fop::Fid>> Uploads::begin(NewObject object, std::uint64_t size_bytes, Wait wait) {
    const Slots::Attempt attempt = [&](std::uint16_t slot) {
        return begin_at({.slot = slot, .object = &object, .size_bytes = size_bytes}, wait);
    };
    std::string pool = object.pool;
    co_return co_await slots_.make_object(std::move(pool), &attempt, wait);
}

Task<Outcome<fop::Fid>> Uploads::begin_at(Beginning beginning, Wait wait) {
    const NewObject& object = *beginning.object;
    fabric::CallRequest asked = slots_.request(fop::UploadBegin{.name = object.name,
                                                                .group = object.group,
                                                                .size_bytes = beginning.size_bytes,
                                                                .slot = beginning.slot,
                                                                .mode = object.mode,
                                                                .no_replace = object.no_replace,
                                                                .collection = object.collection},
                                               wait);
    asked.header.pool = object.pool;
    auto answer = co_await slots_.call_slot(beginning.slot, asked);
    if (!answer) co_return std::unexpected(answer.error());
    // It may safely be begun twice: the server drops an upload that nobody commits.
    answer->sent_before = false;
    if (answer->status != fop::Status::kDone) co_return refused(*answer);
    const auto* const reply = body_of<fop::UploadBeginReply>(*answer);
    const bool makes_sense =
        reply != nullptr && reply->fid.slot() == beginning.slot && reply->fid.is_set();
    if (!makes_sense) co_return nonsense();
    co_return reply->fid;
}

Task<Outcome<fop::Receipt>> Uploads::write(Part part, Wait wait) {
    ENSURE(part.offset % fop::kBlockBytes == 0);
    UploadChunks chunks(slots_, part, wait);
    auto moved = co_await chunks.move();
    if (!moved) co_return std::unexpected(std::move(moved.error()));
    co_return chunks.receipt();
}

Task<Outcome<bool>> Uploads::keep(fop::Receipt receipt, Wait wait) {
    const std::array receipts{receipt};
    const fop::Sync body{.receipts = receipts};
    const auto answer = co_await slots_.call_slot(receipt.slot, slots_.request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->status == fop::Status::kLost) co_return false;
    if (answer->status != fop::Status::kDone) co_return refused(*answer);
    const auto* const reply = body_of<fop::SyncReply>(*answer);
    if (reply == nullptr || reply->receipts.size() != 1) co_return nonsense();
    co_return reply->receipts[0].seq >= receipt.seq;
}

Task<Outcome<Uploads::Committed>> Uploads::commit(fop::Fid fid, std::uint64_t size_bytes,
                                                  Wait wait) {
    const fop::Range whole{.offset = 0, .length = size_bytes};
    const fop::UploadCommit body{
        .fid = fid, .size_bytes = size_bytes, .blocks = fop::count_checksums(whole)};
    const auto answer = co_await slots_.call_slot(fid.slot(), slots_.request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    const bool is_done = answer->status == fop::Status::kDone;
    const auto* const reply = body_of<fop::UploadCommitReply>(*answer);
    if (!is_done && (answer->status != fop::Status::kLost || reply == nullptr)) {
        co_return refused(*answer);
    }
    if (reply == nullptr) co_return nonsense();
    if (is_done) held_.release(reply->receipt);
    co_return Committed{.done = is_done, .incarnation = reply->receipt.incarnation};
}

Task<void> Uploads::abort(fop::Fid fid) {
    const Wait wait{.deadline = after(slots_.reactor().now(), kAbortMax)};
    const fop::UploadAbort body{.fid = fid};
    [[maybe_unused]] const auto answer =
        co_await slots_.call_slot(fid.slot(), slots_.request(body, wait));
}

}  // namespace fopd::client

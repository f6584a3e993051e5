// SPDX-License-Identifier: BSD-2-Clause
#include "client/transfer.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "core/gate.h"

namespace fopd::client {

namespace {

// How often the same window, or an upload as a whole, is sent because the server loses it.
constexpr int kTries = 4;
constexpr const char* kLoses = "the server has lost the data several times";

std::unexpected<Problem> lost(const char* words) {
    return failed(fop::Status::kLost, words);
}

}  // namespace

// -- common to all transfers --

Transfer::Transfer(core::Reactor& reactor, ObjectClient& objects, TransferOptions options)
    : reactor_(reactor), objects_(objects), options_(options), turns_(reactor) {
    ENSURE(options_.lanes > 0);
    ENSURE(options_.window_bytes > 0);
    ENSURE(options_.window_bytes % fop::kBlockBytes == 0);
}

ObjectClient::Wait Transfer::wait() const {
    return {.deadline = after(reactor_.now(), options_.patience), .cancel = options_.cancel};
}

Task<Outcome<void>> Transfer::run_lanes(Lane lane, std::uint64_t bytes_max) {
    problem_.reset();
    finished_ = false;
    turn_ = next_;
    const std::uint64_t windows = bytes_max / options_.window_bytes + 1;
    core::Gate gate;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(options_.lanes, windows); ++i) {
        reactor_.spawn(gate, run_lane(lane));
    }
    co_await gate.close(reactor_);  // Every lane ends: its waits have deadlines.
    if (problem_) co_return std::unexpected(*problem_);
    co_return {};
}

// The kernel provides only those pages of the memory that are written.
Task<void> Transfer::run_lane(Lane lane) {
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(options_.window_bytes);
    auto done = co_await (this->*lane)({memory.get(), options_.window_bytes});
    if (done) co_return;
    if (!problem_) problem_ = std::move(done.error());
    finish();
}

Task<bool> Transfer::take_turn(std::uint64_t offset) {
    while (turn_ != offset && !finished_) {
        // Has no deadline: the lane that has the turn ends by its own deadline, or when its source
        // delivers bytes.
        [[maybe_unused]] const auto woken = co_await turns_.wait({});
    }
    co_return !finished_;
}

void Transfer::end_turn(std::uint64_t next_offset) {
    turn_ = next_offset;
    turns_.wake_all();
}

void Transfer::finish() {
    finished_ = true;
    turns_.wake_all();
}

// -- sending --

Task<Outcome<void>> Sending::send_all() {
    const std::uint64_t size = source_.size_bytes();
    const std::uint64_t left =
        size == 0 ? options_.window_bytes * options_.lanes : size - std::min(size, next_);
    return run_lanes(static_cast<Lane>(&Sending::lane), left);
}

Task<Outcome<void>> Sending::lane(std::span<std::byte> memory) {
    while (!finished()) {
        const std::uint64_t offset = next_;
        next_ += memory.size();
        const bool is_my_turn = co_await take_turn(offset);
        if (!is_my_turn) break;
        if (is_sent(offset)) {
            end_turn(offset + memory.size());
            co_await reactor_.maybe_yield();
            continue;
        }
        auto got = co_await source_.read(offset, memory);
        if (!got) co_return std::unexpected(std::move(got.error()));
        end_turn(offset + memory.size());
        if (*got < memory.size()) finish();
        if (*got == 0) break;
        end_ = std::max(end_, offset + *got);
        auto sent = co_await send({.offset = offset, .bytes = memory.first(*got)});
        if (!sent) co_return sent;
    }
    co_return {};
}

// -- whole objects --

Put::Put(core::Reactor& reactor, ObjectClient& objects, ByteSource& source, TransferOptions options)
    : Sending(reactor, objects, source, options) {}

void Put::go_on(const BegunUpload& upload) {
    if (upload.window_bytes != options_.window_bytes) return;
    const std::uint64_t count = source_.size_bytes() / options_.window_bytes;
    fid_ = upload.fid;
    goes_on_ = true;
    for (const UploadedWindow& each : upload.windows) {
        if (each.index >= count || each.incarnation == 0) continue;
        if (!is_sent(each.index * options_.window_bytes)) moved_ += options_.window_bytes;
        record(each.index, each.incarnation);
        end_ = std::max(end_, (each.index + 1) * options_.window_bytes);
    }
}

void Put::record(std::uint64_t index, std::uint64_t incarnation) {
    if (index >= incarnations_.size()) incarnations_.resize(index + 1);
    incarnations_[index] = incarnation;
}

Task<Outcome<fop::Fid>> Put::run(NewObject object) {
    object_ = std::move(object);
    const auto memory = std::make_unique_for_overwrite<std::byte[]>(options_.window_bytes);
    const std::span<std::byte> first(memory.get(), options_.window_bytes);
    auto got = co_await source_.read(0, first);
    if (!got) co_return std::unexpected(std::move(got.error()));
    if (*got == options_.window_bytes) co_return co_await upload({.offset = 0, .bytes = first});
    end_ = *got;
    NewObject copy = object_;
    auto put = co_await objects_.put(std::move(copy), first.first(*got), wait());
    if (put) moved_ = *got;
    co_return put;
}

Task<Outcome<fop::Fid>> Put::upload(Window first) {
    Outcome<void> done = lost(kLoses);
    for (int tries = 0; tries < kTries; ++tries) {
        done = co_await upload_once(first);
        if (done) co_return fid_;
        fop::Status status = done.error().status;
        // Another principal has begun it.
        const bool is_foreign = std::exchange(goes_on_, false) && status == fop::Status::kDenied &&
                                done.error().answered;
        if (is_foreign) status = fop::Status::kNotFound;
        if (status != fop::Status::kLost && status != fop::Status::kNotFound) break;
        if (!source_.repeats() && !first_only_) {
            done = lost("the server lost some of it, and the input cannot be read again");
            break;
        }
        if (status == fop::Status::kLost) continue;
        fid_ = {};
        forget_all_but(0);
    }
    const bool may_go_on = watcher_ != nullptr && is_silence(done.error());
    if (fid_.is_set() && !may_go_on) co_await objects_.uploads().abort(fid_);
    co_return std::unexpected(std::move(done.error()));
}

Task<Outcome<void>> Put::upload_once(Window first) {
    if (!fid_.is_set()) {
        NewObject copy = object_;
        auto begun =
            co_await objects_.uploads().begin(std::move(copy), source_.size_bytes(), wait());
        if (!begun) co_return std::unexpected(std::move(begun.error()));
        fid_ = *begun;
        if (watcher_ != nullptr) {
            watcher_->on_begun({.fid = fid_, .window_bytes = options_.window_bytes});
        }
    }
    if (!is_sent(0)) {
        auto sent = co_await send(first);
        if (!sent) co_return sent;
    }
    first_only_ = false;
    end_ = std::max<std::uint64_t>(end_, first.bytes.size());
    next_ = options_.window_bytes;
    auto sent = co_await send_all();
    if (!sent) co_return sent;
    auto ended = co_await objects_.uploads().commit(fid_, end_, wait());
    if (!ended) co_return std::unexpected(std::move(ended.error()));
    if (ended->done) co_return {};
    forget_all_but(ended->incarnation);
    co_return lost(kLoses);
}

void Put::forget_all_but(std::uint64_t incarnation) {
    for (std::uint64_t& each : incarnations_) {
        if (each == 0 || each == incarnation) continue;
        each = 0;
        moved_ -= std::min(moved_, options_.window_bytes);
    }
}

bool Put::is_sent(std::uint64_t offset) const {
    const std::uint64_t index = offset / options_.window_bytes;
    return index < incarnations_.size() && incarnations_[index] != 0;
}

Task<Outcome<void>> Put::send(Window window) {
    Outcome<void> sent = lost(kLoses);
    std::uint64_t incarnation = 0;
    for (int tries = 0; tries < kTries && incarnation == 0; ++tries) {
        auto written = co_await objects_.uploads().write(
            {.fid = fid_, .offset = window.offset, .from = window.bytes}, wait());
        if (!written) co_return std::unexpected(std::move(written.error()));
        bool is_kept = true;
        if (!source_.repeats()) {
            auto asked = co_await objects_.uploads().keep(*written, wait());
            if (!asked) co_return std::unexpected(std::move(asked.error()));
            is_kept = *asked;
        }
        if (is_kept) incarnation = written->incarnation;
    }
    if (incarnation == 0) co_return sent;
    const std::uint64_t index = window.offset / options_.window_bytes;
    record(index, incarnation);
    moved_ += window.bytes.size();
    const bool is_whole = window.bytes.size() == options_.window_bytes;
    if (watcher_ != nullptr && is_whole) {
        watcher_->on_sent(fid_, {.index = index, .incarnation = incarnation});
    }
    co_return {};
}

// -- objects that are there --

Overwrite::Overwrite(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
                     TransferOptions options)
    : Sending(reactor, objects, source, options) {}

Task<Outcome<void>> Overwrite::run(Target target) {
    target_ = target;
    co_return co_await send_all();
}

Task<Outcome<void>> Overwrite::send(Window window) {
    auto written = co_await objects_.write({.fid = target_.fid,
                                            .offset = target_.offset + window.offset,
                                            .from = window.bytes,
                                            .durability = target_.durability},
                                           wait());
    if (written) moved_ += window.bytes.size();
    co_return written;
}

namespace {

// Sends one chunk at a time, so that the chunks are appended in order.
TransferOptions in_one_lane(TransferOptions options) {
    options.lanes = 1;
    options.window_bytes = fop::kTransferBytesMax;
    return options;
}

}  // namespace

Appending::Appending(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
                     TransferOptions options)
    : Sending(reactor, objects, source, in_one_lane(options)) {}

Task<Outcome<std::optional<std::uint64_t>>> Appending::run(fop::Fid fid) {
    fid_ = fid;
    auto sent = co_await send_all();
    if (!sent) co_return std::unexpected(std::move(sent.error()));
    co_return first_;
}

Task<Outcome<void>> Appending::send(Window window) {
    auto at = co_await objects_.append(fid_, window.bytes, wait());
    if (!at) co_return std::unexpected(std::move(at.error()));
    if (!first_) first_ = *at;
    moved_ += window.bytes.size();
    co_return {};
}

// -- getting --

Get::Get(core::Reactor& reactor, ObjectClient& objects, ByteSink& sink, TransferOptions options)
    : Transfer(reactor, objects, options), sink_(sink) {}

Task<Outcome<std::uint64_t>> Get::run(fop::Fid fid, fop::Range range) {
    fid_ = fid;
    range_ = range;
    next_ = range.offset;
    auto got = co_await run_lanes(static_cast<Lane>(&Get::lane), range.length);
    if (!got) co_return std::unexpected(std::move(got.error()));
    co_return moved_;
}

// Windows begin at multiples of their length, so that they consist of whole fops.
Task<Outcome<void>> Get::lane(std::span<std::byte> memory) {
    while (!finished() && next_ < range_.end()) {
        const std::uint64_t offset = next_;
        const std::uint64_t to_next = memory.size() - offset % memory.size();
        const std::span<std::byte> into = memory.first(std::min(range_.end() - offset, to_next));
        next_ += into.size();
        auto got = co_await objects_.read(fid_, offset, into, wait());
        if (!got) co_return std::unexpected(std::move(got.error()));
        const bool is_my_turn = co_await take_turn(offset);
        if (!is_my_turn) break;
        auto written = co_await sink_.write(into.first(*got));
        if (!written) co_return written;
        moved_ += *got;
        end_turn(offset + into.size());
        if (*got < into.size()) finish();
    }
    co_return {};
}

}  // namespace fopd::client

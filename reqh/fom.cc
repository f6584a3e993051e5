#include "reqh/fom.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "reqh/access.h"
#include "reqh/executors.h"

namespace fopd::reqh {

namespace {

// How long a fop without a deadline waits for a piece of buffer, and one with a distant one.
constexpr Duration kPieceWaitMax = 30s;

std::unexpected<Error> refusal(Errc code, const char* why) {
    return std::unexpected(Error{.code = code, .context = why});
}

lrs::Direction direction_of(const fop::FopType& type) {
    switch (type.payload) {
        case fop::Payload::kOut: return lrs::Direction::kRead;
        case fop::Payload::kIn: return lrs::Direction::kWrite;
        default: return lrs::Direction::kNone;
    }
}

}  // namespace

void Fom::begin(fabric::IncomingFop& fop, const fop::FopType& type) {
    ENSURE(state_ == State::kFree);
    ENSURE(!fop.cancel_source().cancelled());
    state_ = State::kQueued;
    reported_ = false;
    fop_ = &fop;
    type_ = &type;
    times_.begin(services_.reactor.now());
    const fop::Request& request = fop.request();
    const fabric::Caller& caller = fop.caller();
    const Executor& executor = executor_of(type);
    const std::uint64_t bulk_bytes =
        executor.bulk_bytes == nullptr ? 0 : executor.bulk_bytes(request);
    const Aim aim = executor.aim == nullptr ? Aim{} : executor.aim(request);
    attributes = {.type = type.number,
                  .lane = type.lane,
                  .priority = fop.header().priority,
                  .direction = direction_of(type),
                  .device = executor.slot == nullptr ? lrs::kNoDevice : executor.slot(request),
                  .client = caller.client,
                  .object = aim.object,
                  .offset = aim.offset,
                  .principal = caller.principal,
                  .user = acting_user(caller),
                  .group = caller.groups.empty() ? std::string_view() : caller.groups.front(),
                  .job = fop.header().job,
                  .pool = fop.header().pool,
                  .peer = caller.address,
                  .size_bytes = request.payload.size() + bulk_bytes,
                  .deadline = fop.deadline()};
    fop.cancel_source().add(*this);
}

void Fom::start() {
    ENSURE(state_ == State::kQueued);
    state_ = State::kRunning;
    started_at_ = services_.reactor.now();
    io_wait_ = {};
}

Task<void> Fom::run() {
    ENSURE(state_ == State::kRunning);
    fop::Reply reply;
    std::optional<core::BufferPool::Loan> piece;

    enter(Phase::kAuthenticate);
    Result<void> checked = check_token();
    if (checked) checked = check_rights();
    if (checked && executor_of(*type_).needs_piece) {
        enter(Phase::kLocalResources);
        auto borrowed = co_await services_.buffers.borrow(wait_for_piece());
        if (borrowed) piece.emplace(std::move(*borrowed));
        if (!borrowed) checked = std::unexpected(why_no_piece(borrowed.error()));
    }
    if (checked) checked = check_wanted();
    if (!checked) {
        piece.reset();
        reply = {.status = fop::status_of(checked.error().code), .words = checked.error().context};
        services_.owner.on_finished(*this, reply);
        co_return;
    }
    Operation& operation = services_.operations.take();
    operation.begin({.fop = fop_,
                     .type = type_,
                     .rights = rights_,
                     .only_object = only_object_,
                     .piece = piece ? piece->buffer() : core::Buffer{},
                     .reactor = &services_.reactor,
                     .stores = services_.stores});
    const Operation::Site here{.reactor = &services_.reactor,
                               .stores = services_.stores,
                               .times = &times_,
                               .cancel = &fop_->cancel_source()};
    reply = co_await operation.run(here);
    io_wait_ = operation.io().take_waited();
    // When the client hears of the end nothing is held for it any more but what the reply is made
    // of.
    if (reply.payload.empty()) piece.reset();
    services_.owner.on_finished(*this, reply);
    services_.operations.give_back(operation);
}

// What the token says is worked out at once: the cache may have forgotten it when a wait is over.
Result<void> Fom::check_token() {
    const fabric::Caller& caller = fop_->caller();
    rights_ = caller.rights;
    only_object_.reset();
    const std::span<const std::byte> token = fop_->request().token;
    if (token.empty()) return {};
    if (token.size() > fop::kTokenBytesMax) return refusal(Errc::kInvalid, "token too long");
    const auto checked = services_.tokens.check(token, services_.reactor.now());
    if (!checked) return std::unexpected(checked.error());

    const TokenGrant& grant = **checked;
    only_object_ = grant.object;
    const bool is_bearers = grant.principal.empty() || grant.principal == caller.principal;
    if (!is_bearers) return refusal(Errc::kDenied, "somebody else's token");
    const bool is_of_pool = grant.pool.empty() || grant.pool == fop_->header().pool;
    if (!is_of_pool) return refusal(Errc::kDenied, "token for another pool");
    rights_ = rights_ & grant.rights;
    return {};
}

Result<void> Fom::check_rights() const {
    if (!rights_.cover(type_->rights)) return refusal(Errc::kDenied, "a right is missing");
    return {};
}

Result<void> Fom::check_wanted() const {
    if (fop_->cancel_source().cancelled()) return refusal(Errc::kCancelled, "given up");
    if (fop_->deadline() <= services_.reactor.now())
        return refusal(Errc::kTimedOut, "the deadline passed before it could run");
    return {};
}

core::WaitOptions Fom::wait_for_piece() const {
    return {.deadline = std::min(fop_->deadline(), after(services_.reactor.now(), kPieceWaitMax)),
            .cancel = &fop_->cancel_source()};
}

Error Fom::why_no_piece(const Error& error) const {
    const bool own_deadline = fop_->deadline() <= services_.reactor.now();
    if (error.code != Errc::kTimedOut || own_deadline) return error;
    return {.code = Errc::kBusy, .context = "no buffer was free for too long"};
}

void Fom::end_phases() {
    enter(Phase::kReply);
    times_.end(services_.reactor.now());
}

void Fom::reply(fop::Reply reply) {
    ENSURE(state_ != State::kFree);
    ENSURE(times_.phase() == Phase::kReply);
    fabric::IncomingFop& fop = *std::exchange(fop_, nullptr);
    state_ = State::kFree;
    reply.id = fop.request().id;
    fop.reply(reply);
}

void Fom::describe(FopRecord& record) const {
    ENSURE(state_ != State::kFree);
    record.id = id();
    record.type = type_;
    record.state =
        state_ == State::kQueued ? FopRecord::State::kQueued : FopRecord::State::kRunning;
    record.peer = ShortText(fop_->caller().address);
    record.principal = ShortText(fop_->caller().principal);
    record.arrived_at = arrived_at();
    record.times = times_;
    if (times_.phase() != Phase::kReply) record.times.end(services_.reactor.now());
}

}  // namespace fopd::reqh

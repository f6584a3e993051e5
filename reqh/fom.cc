#include "reqh/fom.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "objects/fids.h"
#include "reqh/caller.h"
#include "reqh/denial.h"
#include "reqh/executors.h"

namespace fopd::reqh {

namespace {

// The longest wait of a fop for a buffer, whatever its deadline.
constexpr Duration kBufferWaitMax = 30s;

// The frames of the coroutines that execute a fop. A write of parts of blocks has the most at a
// time: seven of 400 to 1728 bytes each in a release build with GCC 12.
constexpr std::uint64_t kFramesBytes = 8U << 10;
// See Fom::execution_bytes().
constexpr std::uint64_t kExecutionBytes = sizeof(Operation) + kFramesBytes;
// Likewise for each object that a fop waits for while it is brought back from tape: the frames of
// its wait at both localities.
constexpr std::uint64_t kRecallWaitBytes = 2U << 10;
// What a fop counts from its arrival on has room for its fom.
static_assert(sizeof(Fom) + fabric::kServerFopBytes <= fabric::kFopBytes);

std::unexpected<Error> refusal(Errc code, const char* why) {
    return std::unexpected(Error{.code = code, .context = why});
}

// Whether the token is bound to another principal. A name that was not proved with a key does not
// satisfy a binding.
bool is_bound_to_another(const TokenGrant& grant, const fabric::Caller& caller) {
    if (grant.principal.empty()) return false;
    return caller.kind != fop::AuthKind::kPrincipal || grant.principal != caller.principal;
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
    reported_waiting_ = false;
    reported_hung_ = false;
    parked_ = false;
    client_is_slow_ = false;
    client_given_up_ = false;
    io_wait_ = {};
    waits_for_share_since_.reset();
    share_wait_ = {};
    share_ = nullptr;
    operation_ = nullptr;
    fop_ = &fop;
    type_ = &type;
    times_.begin(services_.reactor.now());
    progress_.begin(services_.reactor.now());
    const fop::Request& request = fop.request();
    const fabric::Caller& caller = fop.caller();
    const Executor& executor = executor_of(type);
    const std::uint64_t bulk_bytes =
        executor.bulk_bytes == nullptr ? 0 : executor.bulk_bytes(request);
    const Aim aim = executor.aim == nullptr ? Aim{} : executor.aim(request);
    const objects::LayoutPool* const known = pool();
    pool_ = known == nullptr ? std::string_view() : known->name;
    attributes = {.type = type.number,
                  .lane = type.lane,
                  .priority = fop.header().priority,
                  .direction = direction_of(type),
                  .device = executor.slot == nullptr ? lrs::kNoDevice : executor.slot(request),
                  .client = caller.client,
                  .object = aim.object,
                  .offset = aim.offset,
                  .principal = caller.principal,
                  .share = caller.share,
                  .user = acting_user(caller),
                  .groups = caller.groups,
                  .job = fop.header().job,
                  .pool = pool_,
                  .peer = caller.address,
                  .size_bytes = request.payload.size() + bulk_bytes,
                  .deadline = fop.deadline(),
                  .arrived_at = services_.reactor.now()};
    set_class({});
    load_class.reset();
    fop.cancel_source().add(*this);
}

std::uint64_t Fom::execution_bytes() const {
    const auto* const waits = std::get_if<fop::RecallWait>(&fop_->request().body);
    return kExecutionBytes + (waits == nullptr ? 0 : waits->fids.size() * kRecallWaitBytes);
}

void Fom::start() {
    ENSURE(state_ == State::kQueued);
    state_ = State::kRunning;
    fop_->started();
    started_at_ = services_.reactor.now();
    if (waits_for_share_since_) share_wait_ = started_at_ - *waits_for_share_since_;
}

Task<void> Fom::run() {
    ENSURE(state_ == State::kRunning);
    fop::Reply reply;
    std::optional<core::BufferPool::Loan> buffer;

    enter(Phase::kAuthenticate);
    Granted<> checked = check_token();
    if (checked) checked = check_rights();
    if (checked && needs_buffer()) {
        enter(Phase::kLocalResources);
        std::optional<Waiting> waiting(std::in_place, progress_, services_.reactor,
                                       Wait{.what = WaitsFor::kBuffer});
        auto borrowed = co_await services_.buffers.borrow(wait_for_buffer());
        waiting.reset();
        if (borrowed) buffer.emplace(std::move(*borrowed));
        if (!borrowed) checked = refused(why_no_buffer(borrowed.error()));
    }
    if (checked) {
        const auto wanted = check_wanted();
        if (!wanted) checked = refused(wanted.error());
    }
    if (!checked) {
        buffer.reset();
        reply = {.status = checked.error().status, .words = checked.error().words};
        services_.owner.on_finished(*this, reply);
        co_return;
    }
    Operation& operation = services_.operations.take();
    fop_->takes_memory(execution_bytes());
    operation.begin({.fop = fop_,
                     .type = type_,
                     .client = this,
                     .progress = &progress_,
                     .lent = lent_,
                     .buffer = buffer ? buffer->buffer() : core::Buffer{},
                     .reactor = &services_.reactor,
                     .stores = services_.stores,
                     .library = services_.library});
    operation_ = &operation;
    const Operation::Site here{.reactor = &services_.reactor,
                               .stores = services_.stores,
                               .times = &times_,
                               .cancel = &fop_->cancel_source()};
    reply = co_await operation.run(here);
    io_wait_ = operation.io().take_waited();
    // When the client learns of the end, no buffer is held for it, unless the reply's payload is in
    // it.
    if (reply.payload.empty()) buffer.reset();
    services_.owner.on_finished(*this, reply);
    services_.operations.give_back(operation);
}

// If the caller's own rights suffice, no token is needed. A token must still be valid when the
// fop's turn comes.
Granted<> Fom::check_sender() {
    if (fop_->caller().rights.cover(type_->rights)) return {};
    Granted<> checked;
    if (may_check_token()) {
        checked = check_token();
        if (checked) checked = check_rights();
    } else {
        checked = refused(fop::Status::kTryAgain, "too many unverified tokens at once");
    }
    if (!checked) enter(Phase::kAuthenticate);  // The fop ends in this phase.
    return checked;
}

// A token that is cached, or too long to be one, costs nothing.
bool Fom::may_check_token() {
    const std::span<const std::byte> token = fop_->request().token;
    const Instant now = services_.reactor.now();
    if (token.empty() || token.size() > fop::kTokenBytesMax) return true;
    if (services_.tokens.knows(token, now)) return true;
    return services_.early_checks.take(fop_->caller().share, now);
}

// The token's grant is copied at once, because the cache may forget it during a wait. A token that
// lends nothing is not an error by itself; its fault is reported only if the token was needed.
Granted<> Fom::check_token() {
    lent_ = {};
    const fabric::Caller& caller = fop_->caller();
    const std::span<const std::byte> token = fop_->request().token;
    if (token.empty()) return {};
    if (token.size() > fop::kTokenBytesMax) {
        return refused(fop::Status::kMalformed, "token too long");
    }
    const auto checked = services_.tokens.check(token, services_.reactor.now());
    if (!checked) {
        lent_.fault = checked.error().context;
        return {};
    }
    const TokenGrant& grant = **checked;
    if (is_bound_to_another(grant, caller)) {
        lent_.fault = "the token is bound to another principal";
        return {};
    }
    lent_.rights = grant.rights;
    if (!grant.pool.empty()) lent_.pool = objects::pool_id(grant.pool);
    if (grant.object) lent_.object = objects::store_fid(*grant.object);
    return {};
}

Granted<> Fom::check_rights() {
    const fop::Rights own = fop_->caller().rights;
    if (own.cover(type_->rights)) return {};
    const auto why_not = lent_.why_not(type_->rights, matter());
    if (!why_not) return {};
    denial_ = denial_by_rights(type_->rights, own, *why_not);
    return refused(fop::Status::kDenied, denial_);
}

const objects::LayoutPool* Fom::pool() const {
    if (services_.stores == nullptr) return nullptr;
    return pool_of(executor_of(*type_), fop_->request(), fop_->header().pool, *services_.stores);
}

// Whether the object that the fop names may be of the pool that its token is for, as the disk has
// objects of several pools.
bool Fom::may_be_in_lent_pool() const {
    const Executor& executor = executor_of(*type_);
    if (!lent_.pool || executor.slot == nullptr || executor.aim == nullptr) return false;
    const objects::StoreLayout& layout = services_.stores->layout();
    const objects::LayoutSlot* const slot = layout.find_slot(executor.slot(fop_->request()));
    const objects::LayoutPool* const lent = layout.find_pool(*lent_.pool);
    return slot != nullptr && lent != nullptr && layout.is_staging(slot->pool) &&
           lent->disk_pool() == slot->pool;
}

// The object or pool that the fop accesses, as far as that is known before an object is loaded.
Matter Fom::matter() const {
    const Executor& executor = executor_of(*type_);
    // Any token is enough, whatever it is for.
    if (executor.about == About::kAnything) return {.pool = lent_.pool, .object = lent_.object};
    if (executor.about == About::kNode || services_.stores == nullptr) return {};
    Matter matter;
    if (const objects::LayoutPool* const found = pool()) matter.pool = found->id;
    if (executor.about == About::kObject) {
        matter.object = objects::store_fid(executor.aim(fop_->request()).object);
    }
    // Checked when the object is loaded.
    if (may_be_in_lent_pool()) matter.pool = lent_.pool;
    if (executor.about == About::kName) matter.object = lent_.object;
    return matter;
}

Result<void> Fom::check_wanted() const {
    if (fop_->cancel_source().cancelled()) return refusal(Errc::kCancelled, "given up");
    if (fop_->deadline() <= services_.reactor.now())
        return refusal(Errc::kTimedOut, "the deadline passed before it could run");
    return {};
}

core::WaitOptions Fom::wait_for_buffer() const {
    return {.deadline = std::min(fop_->deadline(), after(services_.reactor.now(), kBufferWaitMax)),
            .cancel = &fop_->cancel_source()};
}

Error Fom::why_no_buffer(const Error& error) const {
    const bool own_deadline = fop_->deadline() <= services_.reactor.now();
    if (error.code != Errc::kTimedOut || own_deadline) return error;
    return {.code = Errc::kBusy, .context = "it waited too long for a free buffer"};
}

bool Fom::needs_buffer() const {
    return executor_of(*type_).needs_buffer;
}

bool Fom::waits_for_client() const {
    return moves_client_memory(fop_->request());
}

void Fom::wait_for_share() {
    ENSURE(state_ == State::kQueued);
    waits_for_share_since_ = services_.reactor.now();
    services_.reactor.arm(*this, wait_for_buffer().deadline);
}

void Fom::on_time() {
    if (state_ == State::kRunning) return on_client_time();
    services_.owner.on_no_share(*this, why_no_buffer({.code = Errc::kTimedOut,
                                                      .context = "the deadline passed before it "
                                                                 "could run"}));
}

// -- waiting for the client --

Task<Result<void>> Fom::move(Move what) {
    core::Reactor& reactor = services_.reactor;
    client_since_ = reactor.now();
    // If another fop of the client is late, this one counts as slow from the start.
    const bool is_late = services_.owner.is_client_late(*this);
    reactor.arm(*this, after(client_since_, is_late ? Duration::zero() : kClientIsSlowAfter));
    const bool is_pull = what.direction == Direction::kPull;
    auto transfer = is_pull ? fop_->pull(what.memory, what.offset, what.buffer)
                            : fop_->push(what.memory, what.offset, what.buffer);
    const auto moved = co_await std::move(transfer);
    Timer::disarm();
    if (std::exchange(client_is_late_, false)) services_.owner.on_client_in_time(*this);
    if (std::exchange(client_is_slow_, false)) services_.owner.on_client_back(*this);
    if (client_given_up_) {
        // Over the same session or another one, the client may send the request again.
        co_return std::unexpected(Error{.code = Errc::kClosed,
                                        .context = "the client transferred no bytes for too long"});
    }
    co_return moved;
}

void Fom::on_client_time() {
    core::Reactor& reactor = services_.reactor;
    const Duration waited = reactor.now() - client_since_;
    if (!std::exchange(client_is_slow_, true)) services_.owner.on_client_slow(*this);
    if (waited < kClientIsSlowAfter) {
        return reactor.arm(*this, after(client_since_, kClientIsSlowAfter));
    }
    if (!std::exchange(client_is_late_, true)) services_.owner.on_client_late(*this);
    const bool is_too_long =
        waited >= kClientMayTakeMax ||
        (waited >= kClientMayTake && services_.owner.is_wanted_by_others(*this));
    if (is_too_long) {
        client_given_up_ = true;
        fop_->cancel_source().cancel();
        return;
    }
    const Instant soon = after(reactor.now(), 1s);
    reactor.arm(*this, std::max(soon, after(client_since_, kClientMayTake)));
}

void Fom::end_phases() {
    if (state_ == State::kQueued && waits_for_share_since_) {
        share_wait_ = services_.reactor.now() - *waits_for_share_since_;
    }
    enter(Phase::kReply);
    times_.end(services_.reactor.now());
}

void Fom::reply(fop::Reply reply) {
    ENSURE(state_ != State::kFree);
    ENSURE(times_.phase() == Phase::kReply);
    fabric::IncomingFop& fop = *std::exchange(fop_, nullptr);
    operation_ = nullptr;
    state_ = State::kFree;
    reply.id = fop.request().id;
    if (fop.header().wants_times) reply.times = time_spent();
    fop.reply(reply);
}

fop::TimeSpent Fom::time_spent() const {
    using fop::SpentOn;
    const auto waited = [this](auto... what) { return (progress_.waited_for(what) + ...); };
    const Duration disk = waited(WaitsFor::kDisk);
    const Duration disk_queue = std::min(io_wait_, disk);
    // A fop that waits for its share of the buffers has had its turn, but is still queued.
    const Duration share = std::min(share_wait_, times_.of(Phase::kQueued));
    fop::TimeSpent spent;
    spent.set(SpentOn::kTotal, times_.total());
    spent.set(SpentOn::kPolicy, times_.of(Phase::kQueued) - share);
    spent.set(SpentOn::kBuffer, waited(WaitsFor::kBuffer) + share);
    spent.set(SpentOn::kLock, waited(WaitsFor::kSameRequest, WaitsFor::kName, WaitsFor::kLock));
    spent.set(SpentOn::kClient, waited(WaitsFor::kClientSends, WaitsFor::kClientTakes));
    spent.set(SpentOn::kRoom, waited(WaitsFor::kLogRoom, WaitsFor::kSpace));
    spent.set(SpentOn::kDiskQueue, disk_queue);
    spent.set(SpentOn::kDisk, disk - disk_queue + waited(WaitsFor::kTape));
    spent.set(SpentOn::kLog, waited(WaitsFor::kLog));
    spent.set(SpentOn::kLocality, waited(WaitsFor::kLocality));
    return spent;
}

Progress::Longest Fom::longest_wait() const {
    const Duration share = std::min(share_wait_, times_.of(Phase::kQueued));
    const Duration turn = times_.of(Phase::kQueued) - share;
    Progress::Longest longest = progress_.longest();
    if (share > longest.span) longest = {.wait = {.what = WaitsFor::kBuffer}, .span = share};
    if (turn > longest.span) longest = {.wait = {.what = WaitsFor::kTurn}, .span = turn};
    return longest;
}

void Fom::describe(FopRecord& record) const {
    ENSURE(state_ != State::kFree);
    record.id = id();
    record.type = type_;
    record.state =
        state_ == State::kQueued ? FopRecord::State::kQueued : FopRecord::State::kRunning;
    record.peer = ShortText(fop_->caller().address);
    record.principal = ShortText(fop_->caller().principal);
    record.of_class = ShortText(of_class_);
    record.of_rule = ShortText(of_rule_);
    record.arrived_at = arrived_at();
    record.times = times_;
    record.wait = {};
    record.waited = {};
    if (times_.phase() == Phase::kReply) {
        record.waited = longest_wait();
        return;
    }
    const Instant now = services_.reactor.now();
    if (share_ != nullptr && state_ == State::kQueued) record.wait.what = WaitsFor::kBuffer;
    // Another locality may be writing it at this moment; the record then keeps the previous values.
    const auto progress = progress_.read();
    if (progress && state_ == State::kRunning) {
        record.wait = progress->wait;
        if (progress->phase != times_.phase()) {
            record.times.enter(progress->phase, std::min(progress->since, now));
        }
    }
    record.times.end(now);
}

}  // namespace fopd::reqh

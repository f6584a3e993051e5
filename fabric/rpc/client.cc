#include "fabric/rpc/client.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "fop/borrowed.h"
#include "fop/hello.h"

namespace fopd::fabric {

namespace {

// The text of an error for people. An error of the operating system is described by its errno
// alone.
std::string words_of(const Error& error) {
    if (error.os_errno == 0) return describe(error);
    return std::string(error.context) + ": " + std::generic_category().message(error.os_errno);
}

std::uint64_t seed_from(core::Entropy& entropy) {
    return entropy.number();
}

std::unexpected<Error> failure(Errc code) {
    return std::unexpected(Error{.code = code, .context = "call"});
}

Answer unknown_outcome() {
    return {.status = fop::Status::kOutcomeUnknown,
            .body = {},
            .borrowed = {},
            .payload_bytes = 0,
            .words = "the outcome is unknown: the server no longer has a record of the request",
            .sent_before = true};
}

}  // namespace

Duration answer_margin(Duration left) {
    return std::min<Duration>(left / 8, 100ms);
}

// -- the session --

Client::Client(SessionHost& host, ClientOptions options)
    : Timer(&on_time),
      host_(host),
      options_(std::move(options)),
      jitter_(seed_from(host.entropy())),
      backoff_(options_.backoff_min),
      pause_(*this),
      state_changed_(host.reactor()) {
    host_.entropy().fill(id_);
}

Client::~Client() {
    for (const LaneCalls& lane : lanes_) {
        ENSURE(lane.waiting.empty());
        ENSURE(lane.sent.empty());
        ENSURE(lane.put_off.empty());
    }
}

Client::LaneCalls& Client::calls_of(const Call& call) {
    return lanes_[static_cast<std::size_t>(call.request_.type->lane)];
}

bool Client::has_sent() const {
    return std::ranges::any_of(lanes_, [](const LaneCalls& lane) { return !lane.sent.empty(); });
}

void Client::start() {
    if (session_ == nullptr && !armed()) connect();
}

void Client::connect() {
    Address server = options_.server;
    if (!server.locality) server.locality = locality_;
    session_ = &host_.connect(
        {.server = server, .client = id_, .credentials = options_.credentials}, *this);
}

void Client::on_time(core::Timer& timer) {
    auto& self = static_cast<Client&>(timer);
    if (!self.closing_) self.connect();
}

Task<Result<void>> Client::connected(Instant deadline, Tries tries, core::CancelSource* cancel) {
    const core::WaitOptions options{.deadline = deadline, .cancel = cancel};
    const std::uint64_t failures_before = failures_;
    while (!open()) {
        if (closing_ || refusal_) co_return std::unexpected(last_error_);
        if (tries == Tries::kFirst && failures_ > failures_before) {
            co_return std::unexpected(last_error_);
        }
        const auto woken = co_await state_changed_.wait(options);
        if (!woken) {
            if (failures_ > failures_before) co_return std::unexpected(last_error_);
            co_return std::unexpected(woken.error());
        }
    }
    co_return {};
}

Task<void> Client::close() {
    closing_ = true;
    disarm();
    pause_.disarm();
    if (session_ != nullptr) {
        // Calls that were sent may have opened memory, which must be closed at once.
        if (has_sent()) {
            session_->end(Errc::kClosed, "the client is done");
        } else {
            session_->leave("the client is done");
        }
    }
    // Needs no deadline: the transport releases a closed connection after a few turns.
    while (session_ != nullptr) {
        [[maybe_unused]] const auto woken = co_await state_changed_.wait({});
    }
    fail_all(Error{.code = Errc::kClosed, .context = "client"});
    state_changed_.wake_all();
    // Coroutines that waited in connected() run before the client is destroyed.
    co_await host_.reactor().yield();
}

void Client::on_open(Session& session) {
    // A server that no longer knows this client, or is in another life, cannot tell the outcome of
    // requests sent earlier. Those for which it does no harm are sent again.
    const fop::AcceptHello& accepted = session.accepted();
    const bool remembers =
        session.resumed() && accepted.incarnation == incarnation_ && accepted.locality == locality_;
    incarnation_ = accepted.incarnation;
    locality_ = accepted.locality;
    turned_away_ = false;
    opened_at_ = host_.reactor().now();
    if (std::exchange(was_open_, true)) ++reconnects_;

    for (LaneCalls& lane : lanes_) {
        core::IntrusiveList<InCalls> again;
        while (InCalls* each = lane.put_off.pop_front()) insert(lane.sent, *each);
        while (InCalls* each = lane.sent.pop_front()) {
            auto& call = static_cast<Call&>(*each);
            if (call.given_up_) {
                call.finish(failure(call.why_given_up_));
            } else if (!may_send_again(call, remembers)) {
                call.finish(unknown_outcome());
            } else {
                again.push_back(*each);
            }
        }
        while (InCalls* each = lane.waiting.pop_front()) insert(again, *each);
        while (InCalls* each = again.pop_front()) lane.waiting.push_back(*each);
    }
    acknowledge(session);
    state_changed_.wake_all();
    session.wants_turn();
}

bool Client::may_send_again(const Call& call, bool remembers) const {
    switch (call.request_.type->repeat) {
        case fop::Repeat::kIdempotent: return true;
        case fop::Repeat::kOnce: return remembers;
        case fop::Repeat::kRecorded:
            return host_.reactor().now() - call.first_sent_at_ <= options_.recorded_max;
    }
    return false;
}

// In the order of their numbers; calls without a number come last, in the order of their arrival.
void Client::insert(core::IntrusiveList<InCalls>& calls, InCalls& added) {
    const std::uint64_t id = static_cast<Call&>(added).id_;
    const auto is_later = [id](InCalls& other) {
        const std::uint64_t other_id = static_cast<Call&>(other).id_;
        return id != 0 && (other_id == 0 || other_id > id);
    };
    if (calls.empty() || !is_later(calls.back())) return calls.push_back(added);
    calls.insert_before_first(added, is_later);
}

// The server has put the request off, and may not have looked whether an earlier life has run it.
// As a new request it might run twice.
void Client::put_off(Call& call) {
    call.close_memory();
    call.sent_ = false;
    static_cast<InCalls&>(call).unlink();
    insert(calls_of(call).put_off, call);
    if (pause_.armed()) return;
    host_.reactor().arm(pause_, after(host_.reactor().now(), put_off_pause_));
    put_off_pause_ = std::min(put_off_pause_ * 2, kPutOffMax);
}

void Client::send_put_off() {
    for (LaneCalls& lane : lanes_) {
        while (InCalls* each = lane.put_off.pop_front()) {
            auto& call = static_cast<Call&>(*each);
            if (may_send_again(call, true)) {
                insert(lane.waiting, call);
            } else {
                call.finish(unknown_outcome());
            }
        }
    }
    if (open()) session_->wants_turn();
}

// Calls stay unchanged until the connection is gone: until then the server may access their memory.
void Client::on_end(Session&, const Error& error, std::string_view words) {
    ++failures_;
    const Instant opened_at = std::exchange(opened_at_, kNever);
    const bool has_lasted =
        opened_at != kNever && host_.reactor().now() - opened_at >= options_.backoff_max;
    if (has_lasted) backoff_ = options_.backoff_min;
    last_error_ = error;
    last_problem_ = words.empty() ? words_of(error) : std::string(words);
    // kBusy: this locality is full, or does not exist after a restart. The next session may use
    // another one.
    turned_away_ = false;
    if (error.code == Errc::kBusy) {
        locality_.reset();
        turn_away();
    }
    lacks_locality_ = error.code == Errc::kBusy && options_.server.locality.has_value() &&
                      words == fop::kNoSuchLocality;
    for (LaneCalls& lane : lanes_) {
        lane.sent.for_each([](InCalls& each) { static_cast<Call&>(each).sent_ = false; });
    }
    state_changed_.wake_all();
}

void Client::on_gone(Session&) {
    session_ = nullptr;
    // Answers to calls that were given up are not needed any more.
    for (CallState& state : calls_) {
        if (state.used && state.call == nullptr) forget(state);
    }
    core::IntrusiveList<InCalls> given_up;
    for (LaneCalls& lane : lanes_) {
        lane.sent.for_each([&given_up](InCalls& each) {
            auto& call = static_cast<Call&>(each);
            call.close_memory();
            if (!call.given_up_) return;
            each.unlink();
            given_up.push_back(each);
        });
    }
    while (InCalls* each = given_up.pop_front()) {
        auto& call = static_cast<Call&>(*each);
        call.finish(failure(call.why_given_up_));
    }
    if (closing_ || last_error_.code == Errc::kDenied) {
        // Asking again would not change the server's mind.
        if (!closing_) refusal_ = last_error_;
        fail_all(last_error_);
    } else {
        const auto spread = static_cast<std::uint64_t>(backoff_.count() / 2);
        const Duration wait =
            backoff_ / 2 + Duration(static_cast<std::int64_t>(jitter_.below(spread + 1)));
        backoff_ = std::min(backoff_ * 2, options_.backoff_max);
        host_.reactor().arm(*this, after(host_.reactor().now(), wait));
    }
    state_changed_.wake_all();
}

void Client::on_bye(Session& session, std::string_view words) {
    last_problem_ = words;
    turn_away();
    leave_if_done(session);
}

// A server that drains gets no new requests; the session ends when the last answer has arrived.
void Client::leave_if_done(Session& session) {
    if (turned_away_ && !has_sent()) session.end(Errc::kBusy, "the server drains");
}

// Calls that were sent may have started: their outcome is known only in the next session.
void Client::turn_away() {
    turned_away_ = true;
    core::IntrusiveList<InCalls> unsent;
    for (LaneCalls& lane : lanes_) {
        lane.waiting.for_each([&unsent](InCalls& each) {
            if (static_cast<Call&>(each).first_sent_at_ != kNever) return;
            each.unlink();
            unsent.push_back(each);
        });
    }
    while (InCalls* each = unsent.pop_front()) {
        static_cast<Call*>(each)->finish(not_taken());
    }
}

// The answer to calls that were not sent: the server's reason.
Answer Client::not_taken() const {
    return {.status = fop::Status::kTryAgain, .body = {}, .words = last_problem_};
}

void Client::fail_all(const Error& error) {
    core::IntrusiveList<InCalls> failed;
    for (LaneCalls& lane : lanes_) {
        while (InCalls* each = lane.sent.pop_front()) failed.push_back(*each);
        while (InCalls* each = lane.waiting.pop_front()) failed.push_back(*each);
        while (InCalls* each = lane.put_off.pop_front()) failed.push_back(*each);
    }
    while (InCalls* each = failed.pop_front()) {
        static_cast<Call*>(each)->finish(std::unexpected(error));
    }
}

// -- calls --

Client::Call Client::call(const CallRequest& request) {
    return {*this, request};
}

void Client::on_turn_end(Session& session) {
    if (turned_away_) return;
    for (const fop::Lane each : kLanes) {
        LaneCalls& lane = lanes_[static_cast<std::size_t>(each)];
        while (!lane.waiting.empty()) {
            auto& call = static_cast<Call&>(lane.waiting.front());
            if (!send(session, call)) break;
        }
    }
}

// Adds the call to the session's message. False: its lane has no room now; the session reports when
// it has.
bool Client::send(Session& session, Call& call) {
    const CallRequest& asked = call.request_;
    if (session.fop_credits(asked.type->lane) == 0) return false;
    if (call.id_ == 0) {
        if (free_numbers_.empty() && calls_.size() == kCallsMax) return false;
        if (free_numbers_.empty()) {
            free_numbers_.push_back(static_cast<std::uint16_t>(calls_.size()));
            calls_.emplace_back();
        }
        const std::uint16_t number = free_numbers_.back();
        free_numbers_.pop_back();
        call.id_ = next_number_++ * kCallsMax + number;
        calls_[number] = {.id = call.id_, .call = &call, .lane = asked.type->lane, .used = true};
        ++outstanding_;
    }
    fop::Request request{.id = call.id_,
                         .type = asked.type->number,
                         .timeout = {},
                         .token = asked.token,
                         .payload = asked.payload,
                         .payload_crc = std::nullopt,
                         .body = asked.body,
                         .fault = fop::Status::kDone};
    fop::RequestHeader header = asked.header;
    header.wants_times = options_.times != nullptr;
    const Instant now = host_.reactor().now();
    if (asked.deadline != kNever) {
        const Duration left = asked.deadline - now;
        request.timeout = std::max<Duration>(left - answer_margin(left), 1us);
    }

    for (;;) {
        fop::MessageWriter* const message = session.requests(header);
        if (message == nullptr) {
            // The server has not seen the descriptor yet.
            call.close_memory();
            return false;
        }
        const bool was_empty = message->empty();
        if (was_empty) keep_header(asked.header);
        if (was_empty || same_header(asked.header)) {
            if (!call.open_memory(session, request.body)) {
                call.finish(failure(Errc::kNoSpace));
                return true;
            }
            if (message->add(request)) break;
        }
        if (was_empty) {
            // The request does not fit into any message.
            call.finish(failure(Errc::kInvalid));
            return true;
        }
        session.send_message();
    }
    session.use_fop_credit(asked.type->lane);
    call.sent_ = true;
    call.sent_before_ = call.first_sent_at_ != kNever;
    if (!call.sent_before_) call.first_sent_at_ = now;
    static_cast<InCalls&>(call).unlink();
    insert(calls_of(call).sent, call);
    return true;
}

bool Client::same_header(const fop::RequestHeader& header) const {
    return header.job == job_ && header.pool == pool_ && header.user == user_ &&
           header.priority == priority_;
}

void Client::keep_header(const fop::RequestHeader& header) {
    job_ = header.job;
    pool_ = header.pool;
    user_ = header.user;
    priority_ = header.priority;
}

bool Client::on_replies(Session& session, const fop::RepliesView& replies) {
    for (const fop::Reply reply : replies) {
        const std::size_t number = reply.id % kCallsMax;
        if (number >= calls_.size()) return false;  // No request has this number.
        CallState& state = calls_[number];
        if (!state.used || state.id != reply.id) return false;  // No request in flight has this id.
        session.regain_fop_credit(state.lane);
        Call* const call = state.call;
        if (call == nullptr) {
            forget(state);
            continue;
        }
        if (!call->sent_) return false;
        if (call->given_up_) {
            call->finish(failure(call->why_given_up_));
            continue;
        }
        const CallRequest& asked = call->request_;
        const bool may_have_run =
            call->sent_before_ && asked.type->repeat == fop::Repeat::kRecorded;
        if (may_have_run && reply.status == fop::Status::kTryAgain) {
            put_off(*call);
            continue;
        }
        put_off_pause_ = kPutOffMin;
        backoff_ = options_.backoff_min;
        if (!fop::payload_intact(reply)) {
            call->finish(failure(Errc::kCorrupt));
        } else if (reply.payload.size() > asked.reply_into.size()) {
            call->finish(failure(Errc::kInvalid));
        } else {
            if (!reply.payload.empty()) {
                std::memcpy(asked.reply_into.data(), reply.payload.data(), reply.payload.size());
            }
            Answer answer{.status = reply.status,
                          .body = reply.body,
                          .borrowed = {},
                          .payload_bytes = reply.payload.size(),
                          .words = std::string(reply.words),
                          .sent_before =
                              call->sent_before_ && asked.type->repeat != fop::Repeat::kIdempotent};
            if (const std::size_t bytes = fop::borrowed_bytes(reply.body); bytes > 0) {
                answer.borrowed = std::make_unique_for_overwrite<std::byte[]>(bytes);
                fop::keep_borrowed(answer.body, {answer.borrowed.get(), bytes});
            }
            if (options_.times != nullptr && reply.times) tell_times(*call, *reply.times);
            call->finish(std::move(answer));
        }
    }
    acknowledge(session);
    const bool has_waiting =
        std::ranges::any_of(lanes_, [](const LaneCalls& lane) { return !lane.waiting.empty(); });
    if (has_waiting) session.wants_turn();
    leave_if_done(session);
    return true;
}

void Client::tell_times(const Call& call, const fop::TimeSpent& at_server) const {
    const Instant now = host_.reactor().now();
    options_.times->on_times(at_server, call.first_sent_at_ - call.began_at_, now - call.began_at_);
}

// Numbers grow, and the oldest call of each list is its first.
void Client::acknowledge(Session& session) {
    std::uint64_t oldest = next_number_ * kCallsMax;
    for (LaneCalls& lane : lanes_) {
        for (core::IntrusiveList<InCalls>* calls : {&lane.sent, &lane.put_off, &lane.waiting}) {
            if (calls->empty()) continue;
            const std::uint64_t id = static_cast<Call&>(calls->front()).id_;
            if (id != 0) oldest = std::min(oldest, id);
        }
    }
    session.acknowledge(oldest);
}

// Ends the call; a reply that still comes is ignored.
void Client::forsake(Call& call, Errc why) {
    calls_[call.id_ % kCallsMax].call = nullptr;
    call.id_ = 0;
    call.finish(failure(why));
}

void Client::on_let_go(Session& session, std::uint64_t request) {
    const std::size_t number = request % kCallsMax;
    if (number >= calls_.size()) return;
    const CallState& state = calls_[number];
    // Nothing to do for calls without memory, and for those that were answered meanwhile.
    if (!state.used || state.id != request || state.call == nullptr || !state.call->given_up_)
        return;
    forsake(*state.call, state.call->why_given_up_);
    leave_if_done(session);
}

void Client::forget(CallState& state) {
    close_memory(state.taken_back);
    state.used = false;
    state.call = nullptr;
    free_numbers_.push_back(static_cast<std::uint16_t>(&state - calls_.data()));
    --outstanding_;
}

// -- one call --

void Client::Call::await_suspend(std::coroutine_handle<> handle) {
    handle_ = handle;
    began_at_ = client_.host_.reactor().now();
    const bool cancelled = request_.cancel != nullptr && request_.cancel->cancelled();
    if (cancelled || client_.closing_ || client_.refusal_) {
        return finish(cancelled          ? failure(Errc::kCancelled)
                      : client_.refusal_ ? std::unexpected(*client_.refusal_)
                                         : failure(Errc::kClosed));
    }
    if (client_.turned_away_) return finish(client_.not_taken());
    if (request_.deadline != kNever) client_.host_.reactor().arm(*this, request_.deadline);
    if (request_.cancel != nullptr) request_.cancel->add(*this);
    client_.calls_of(*this).waiting.push_back(*this);
    if (client_.open()) client_.session_->wants_turn();
}

Client::Call::~Call() {
    close_memory();
    if (id_ != 0) client_.calls_[id_ % kCallsMax].call = nullptr;
}

void Client::Call::on_time(core::Timer& timer) {
    auto& self = static_cast<Call&>(timer);
    static_cast<core::CancelHook&>(self).unlink();
    self.client_.give_up(self, Errc::kTimedOut);
}

void Client::Call::on_cancel(core::CancelHook& hook) {
    auto& self = static_cast<Call&>(hook);
    self.disarm();
    self.client_.give_up(self, Errc::kCancelled);
}

// The caller needs its memory back. If the server has no descriptor of it, or the transport takes
// it back, the call ends at once; otherwise when the server has released the memory or answered. If
// the server does neither in time, a transfer may be in flight that closing the memory would not
// stop: only the end of the connection does.
void Client::give_up(Call& call, Errc why) {
    if (call.given_up_) {  // The server has not released it in time.
        if (open()) {
            session_->end(Errc::kTimedOut,
                          "the server does not release the memory of a cancelled call");
        }
        return;
    }
    if (call.sent_) session_->cancel_request(call.id_);
    if (!call.has_memory_open()) {
        if (!call.sent_) return call.finish(failure(why));
        return forsake(call, why);
    }
    if (call.take_back_memory()) return forsake(call, why);
    call.given_up_ = true;
    call.why_given_up_ = why;
    host_.reactor().arm(call, after(host_.reactor().now(), options_.let_go_max));
}

void Client::Call::finish(Result<Answer> outcome) {
    disarm();
    static_cast<core::CancelHook&>(*this).unlink();
    static_cast<InCalls&>(*this).unlink();
    close_memory();
    if (id_ != 0) client_.forget(client_.calls_[std::exchange(id_, 0) % kCallsMax]);
    outcome_ = std::move(outcome);
    client_.host_.reactor().schedule(handle_);
}

}  // namespace fopd::fabric

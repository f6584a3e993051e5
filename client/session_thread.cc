// SPDX-License-Identifier: BSD-2-Clause
#include "client/session_thread.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/clock.h"
#include "core/poll_backend.h"
#include "core/printable.h"
#include "core/signal_mask.h"

namespace fopd::client {

namespace {

// Between two tries to connect, doubling; a random half of it is left out, so that clients that
// lost one server do not come back as one.
constexpr Duration kConnectPauseMin = 50ms;
constexpr Duration kConnectPauseMax = 5s;
// A try also ends by itself, at the deadlines of connection and handshake.
constexpr Duration kTryMax = 10s;

Ended closed() {
    return {.kind = Ended::Kind::kClosed,
            .status = fop::Status::kCancelled,
            .bytes = 0,
            .words = "the client was closed"};
}

Ended answered(fop::Status status, std::string words) {
    return {
        .kind = Ended::Kind::kAnswered, .status = status, .bytes = 0, .words = std::move(words)};
}

}  // namespace

Operation::Operation() : Message(&deliver) {}

// -- from any thread --

std::expected<std::shared_ptr<SessionThread>, Error> SessionThread::start(Options options,
                                                                          World world) {
    // Never destroyed: a program may end while its sessions are open, and their threads run.
    static const core::PosixClock& clock = *new core::PosixClock;  // NOLINT(*-owning-memory)
    auto backend = core::make_poll_backend(clock);
    if (!backend) return std::unexpected(backend.error());
    const core::SignalsBlocked blocked;  // Signals are for the threads of the program.
    std::unique_ptr<core::Offload> offload;
    if (world.resolve) {
        auto made = core::make_thread_offload({.name = "fopd-resolve", .thread_count = 1});
        if (!made) return std::unexpected(made.error());
        offload = std::move(*made);
    }
    std::shared_ptr<SessionThread> made(new SessionThread(std::move(options), std::move(world),
                                                          std::move(*backend), std::move(offload)));
    made->thread_ = std::thread([made] { made->run(); });
    made->id_ = made->thread_.get_id();
    return made;
}

SessionThread::SessionThread(Options options, World world, std::unique_ptr<core::Backend> backend,
                             std::unique_ptr<core::Offload> offload)
    : options_(std::move(options)),
      world_(std::move(world)),
      reactor_(std::move(backend)),
      offload_(std::move(offload)),
      changed_(reactor_) {}

SessionThread::~SessionThread() = default;

void SessionThread::submit(Operation& operation) {
    operation.thread_ = this;
    {
        const std::lock_guard lock(mutex_);
        if (!closed_) {
            under_way_.push_back(operation);
            reactor_.post(operation);
            return;
        }
    }
    operation.done(*closed_);  // Never changed once it is there.
}

void SessionThread::stop(const std::shared_ptr<SessionThread>& thread) {
    {
        const std::lock_guard lock(thread->mutex_);
        if (!thread->closed_) thread->closed_ = closed();
        thread->reactor_.post(thread->stop_);
    }
    if (thread->is_this_thread()) {
        thread->thread_.detach();  // It has a share in itself until its end.
    } else {
        thread->thread_.join();
    }
}

// -- on the thread --

void SessionThread::run() noexcept {
    Ended why = closed();
    try {
        transport_ = world_.make_transport(events_, entropy_);
        host_ = std::make_unique<fabric::SessionHost>(reactor_, events_, entropy_,
                                                      client_host_options(options_.protection));
        if (const auto opened = host_->open(*transport_); opened) {
            reactor_.spawn(gate_, keep_connected());
        } else {
            refusal_ = answered(fop::status_of(opened.error().code), describe(opened.error()));
            host_.reset();
        }
        reactor_.run();
    } catch (const std::exception& problem) {
        // Memory ran out in the middle of an operation, so no state can be trusted any more.
        // Destroying the coroutines ends their use of the memory that callers have lent; all other
        // objects are leaked.
        why = answered(fop::Status::kNoSpace, problem.what());
        reactor_.drop_coroutines();
        [[maybe_unused]] const auto* const client = client_.release();
        [[maybe_unused]] const auto* const host = host_.release();
        [[maybe_unused]] const auto* const transport = transport_.release();
    }
    finish_all(why);
    host_.reset();
}

void Operation::deliver(core::Message& message) {
    auto& self = static_cast<Operation&>(message);
    SessionThread& thread = *self.thread_;
    thread.reactor_.spawn(thread.gate_, thread.perform(&self));
}

void SessionThread::Stop::deliver(core::Message& message) {
    SessionThread& thread = static_cast<Stop&>(message).thread;
    thread.reactor_.spawn(thread.stop_gate_, thread.shut_down());
}

Task<void> SessionThread::shut_down() {
    stopping_ = true;
    cancel_.cancel();
    co_await close_client();
    // No deadline: all operations are cancelled; only a pending address lookup may take longer.
    co_await gate_.close(reactor_);
    client_.reset();
    if (host_ != nullptr) co_await host_->close();
    reactor_.stop();
}

Task<void> SessionThread::close_client() {
    if (client_ == nullptr || std::exchange(client_closed_, true)) co_return;
    co_await client_->close();
}

void SessionThread::finish(Operation& operation, Ended ended) {
    {
        const std::lock_guard lock(mutex_);
        static_cast<core::ListNode&>(operation).unlink();
    }
    operation.done(std::move(ended));
}

// The end of the thread, however it came to it.
void SessionThread::finish_all(const Ended& ended) {
    for (;;) {
        Operation* operation = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (!closed_) closed_ = ended;
            operation = under_way_.pop_front();
        }
        if (operation == nullptr) return;
        operation->done(ended);
    }
}

// -- the session --

Task<void> SessionThread::keep_connected() {
    Duration pause = kConnectPauseMin;
    while (!stopping_) {
        settled_ = co_await try_each_address();
        changed_.wake_all();
        if (settled_ || refusal_ || stopping_) co_return;
        ++failures_;
        const auto half = static_cast<std::uint64_t>(pause.count() / 2);
        const Duration wait =
            pause / 2 + Duration(static_cast<Duration::rep>(entropy_.number() % half));
        [[maybe_unused]] const auto slept = co_await reactor_.sleep_for(wait, &cancel_);
        pause = std::min(pause * 2, kConnectPauseMax);
    }
}

Task<bool> SessionThread::try_each_address() {
    std::vector<std::string> hosts{options_.server.host};
    if (world_.resolve) {
        auto look_up = [this] { return world_.resolve(options_.server.host); };
        auto found = co_await offload_->run(reactor_, look_up);
        if (!found || !*found) {
            last_failure_ = no_session(Error{.code = Errc::kNotFound, .context = "look up"},
                                       found ? found->error() : describe(found.error()));
            co_return false;
        }
        hosts = std::move(**found);
    }
    for (const std::string& host : hosts) {
        if (stopping_) co_return false;
        ObjectClientOptions options;
        options.server = options_.server;
        options.server.host = host;
        options.credentials = options_.credentials;
        options.token = options_.token;
        if (options_.explain) options.times = &times_;
        client_ = std::make_unique<ObjectClient>(*host_, std::move(options));
        client_closed_ = false;
        client_->start();
        const Instant deadline = after(reactor_.now(), kTryMax);
        const auto open =
            co_await client_->home().connected(deadline, fabric::Client::Tries::kFirst);
        if (open) co_return true;
        if (stopping_) co_return false;  // The coroutine that stops the thread closes the client.
        last_failure_ = no_session(open.error(), client_->home().last_problem());
        if (open.error().code == Errc::kDenied) refusal_ = last_failure_;
        co_await close_client();
        if (stopping_) co_return false;
        client_.reset();
        if (refusal_) co_return false;
    }
    co_return false;
}

Ended SessionThread::no_session(const Error& error, std::string_view words) const {
    std::string why = fabric::format_address(options_.server) + ": ";
    core::append_printable(why, words.empty() ? std::string_view(describe(error)) : words);
    const bool lacks_locality = client_ != nullptr && client_->home().lacks_locality();
    if (lacks_locality) return answered(fop::Status::kNotFound, std::move(why));
    switch (error.code) {
        case Errc::kDenied: return answered(fop::Status::kDenied, std::move(why));
        case Errc::kBusy: return answered(fop::Status::kTryAgain, std::move(why));
        case Errc::kUnsupported: return answered(fop::Status::kVersion, std::move(why));
        case Errc::kNoSpace: return answered(fop::Status::kNoSpace, std::move(why));
        default: break;
    }
    return {.kind = Ended::Kind::kUnreachable,
            .status = fop::Status::kTimedOut,
            .bytes = 0,
            .words = std::move(why)};
}

// -- operations --

Task<void> SessionThread::perform(Operation* operation) {
    Ended ended = co_await outcome_of(operation);
    finish(*operation, std::move(ended));
}

Task<Ended> SessionThread::outcome_of(Operation* operation) {
    const Instant deadline = after(reactor_.now(), operation->timeout);
    const core::WaitOptions wait{.deadline = deadline, .cancel = &cancel_};
    const std::uint64_t failures_before = failures_;
    while (!settled_) {
        if (stopping_) co_return closed();
        if (refusal_) co_return *refusal_;
        const bool wants_session = operation->type == nullptr && !operation->work;
        if (wants_session && failures_ > failures_before) co_return *last_failure_;
        const auto woken = co_await changed_.wait(wait);
        if (woken || woken.error().code != Errc::kTimedOut) continue;
        if (last_failure_) co_return *last_failure_;
        co_return no_session(woken.error(), "no connection in time");
    }
    if (operation->work) {
        co_return co_await work(operation,
                                {.deadline = deadline, .cancel = &cancel_, .job = operation->job});
    }
    if (operation->type != nullptr) co_return co_await call(operation, deadline);
    const auto open = co_await client_->home().connected(deadline, fabric::Client::Tries::kFirst);
    if (open) co_return Ended{};
    if (stopping_) co_return closed();
    co_return no_session(open.error(), client_->home().last_problem());
}

Task<Ended> SessionThread::work(Operation* operation, ObjectClient::Wait wait) {
    auto outcome = co_await operation->work(*client_, wait);
    if (outcome) {
        Ended ended = answered(fop::Status::kDone, {});
        ended.bytes = *outcome;
        co_return ended;
    }
    if (stopping_) co_return closed();
    co_return answered(outcome.error().status, std::move(outcome.error().words));
}

Task<Ended> SessionThread::call(Operation* operation, Instant deadline) {
    const fabric::CallRequest request{.type = operation->type,
                                      .body = operation->body,
                                      .header = {.job = operation->job},
                                      .token = options_.token,
                                      .payload = operation->payload,
                                      .reply_into = operation->reply_into,
                                      .source = operation->source,
                                      .target = operation->target,
                                      .deadline = deadline};
    auto answer = co_await client_->home().call(request);
    if (!answer) co_return no_answer(answer.error());
    Ended ended = answered(answer->status, {});
    ended.bytes = answer->payload_bytes;
    if (const auto* const bulk = std::get_if<fop::BulkEchoReply>(&answer->body)) {
        ended.bytes = bulk->bytes;
    }
    core::append_printable(ended.words, answer->words);
    co_return ended;
}

Ended SessionThread::no_answer(const Error& error) const {
    switch (error.code) {
        case Errc::kClosed: return closed();
        case Errc::kDenied: return no_session(error, client_->home().last_problem());
        case Errc::kInvalid:
            return answered(fop::Status::kTooLarge, "the request is larger than a message may be");
        case Errc::kTimedOut: {
            std::string why = "no answer in time";
            if (!client_->home().open()) {
                why += "; the connection is lost: ";
                core::append_printable(why, client_->home().last_problem());
            }
            return answered(fop::Status::kTimedOut, std::move(why));
        }
        default: return answered(fop::status_of(error.code), describe(error));
    }
}

}  // namespace fopd::client

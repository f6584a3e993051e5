// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "client/endpoint.h"
#include "client/object_client.h"
#include "client/time_ledger.h"
#include "core/cancel.h"
#include "core/entropy.h"
#include "core/events.h"
#include "core/offload.h"
#include "core/reactor.h"
#include "core/wait_queue.h"

namespace fopd::client {

// The outcome of an operation, for callers on other threads.
struct Ended {
    // With kAnswered, `status` is the answer of a server; otherwise no server has answered.
    enum class Kind : std::uint8_t { kAnswered, kUnreachable, kClosed };
    Kind kind = Kind::kAnswered;
    fop::Status status = fop::Status::kDone;
    std::size_t bytes = 0;
    std::string words;
};

class SessionThread;

// An operation for a SessionThread: a fop (`type`), work on objects (`work`), or, with neither, a
// wait for a session. The owner keeps it and everything that it refers to until done() is called,
// which is the last access.
class Operation : public core::Message, public core::ListNode {
public:
    Operation();
    virtual ~Operation() = default;

    // The number of bytes received.
    using Work = std::function<Task<Outcome<std::uint64_t>>(ObjectClient&, ObjectClient::Wait)>;

    const fop::FopType* type = nullptr;
    Work work;
    fop::RequestBody body;
    std::string job;
    std::span<const std::byte> payload;
    std::span<std::byte> reply_into;
    std::span<std::byte> source;
    std::span<std::byte> target;
    Duration timeout = Duration::max();

    virtual void done(Ended ended) noexcept = 0;

private:
    friend SessionThread;
    static void deliver(core::Message& message);
    SessionThread* thread_ = nullptr;
};

// The sessions with one server, on a thread of its own; lost sessions are made again. Any thread
// may submit operations; they run on that thread.
class SessionThread {
public:
    struct Options : Endpoint {
        bool explain = false;  // The server is asked where the time of each fop goes.
    };
    // Resolves a host and port into numeric hosts. May block; called on a separate thread.
    using Resolve = std::function<std::expected<std::vector<std::string>, std::string>(
        const std::string& host)>;
    using MakeTransport = std::function<std::unique_ptr<fabric::Transport>(core::EventSink& events,
                                                                           core::Entropy& entropy)>;

    // The real or simulated world that it uses.
    struct World {
        Resolve resolve;  // Null: hosts need no resolving.
        MakeTransport make_transport;
    };

    // Starts the thread. Throws std::bad_alloc and std::system_error.
    static std::expected<std::shared_ptr<SessionThread>, Error> start(Options options, World world);
    ~SessionThread();
    SessionThread(const SessionThread&) = delete;
    SessionThread& operator=(const SessionThread&) = delete;

    void submit(Operation& operation);
    // Ends all operations as kClosed, and waits for that unless called on the thread itself. Once.
    static void stop(const std::shared_ptr<SessionThread>& thread);
    // The sum of the parts of the time of all fops so far; with Options::explain.
    TimeLedger::Figures times() const { return times_.figures(); }
    // Passes the times of each fop to `to` from now on. It outlives the thread.
    void pass_times_on(fabric::TimesUser& to) { times_.pass_on(to); }
    bool is_this_thread() const { return std::this_thread::get_id() == id_; }

private:
    friend Operation;
    struct Stop final : core::Message {
        explicit Stop(SessionThread& owner) : Message(&deliver), thread(owner) {}
        static void deliver(core::Message& message);
        SessionThread& thread;
    };

    SessionThread(Options options, World world, std::unique_ptr<core::Backend> backend,
                  std::unique_ptr<core::Offload> offload);

    void run() noexcept;
    Task<void> keep_connected();
    Task<bool> try_each_address();
    Task<void> perform(Operation* operation);
    Task<Ended> outcome_of(Operation* operation);
    Task<Ended> call(Operation* operation, Instant deadline);
    Task<Ended> work(Operation* operation, ObjectClient::Wait wait);
    Task<void> close_client();
    Task<void> shut_down();
    void finish(Operation& operation, Ended ended);
    void finish_all(const Ended& ended);
    Ended no_session(const Error& error, std::string_view words) const;
    Ended no_answer(const Error& error) const;

    const Options options_;
    const World world_;
    TimeLedger times_;
    core::SystemEntropy entropy_;
    core::NullEventSink events_;
    core::Reactor reactor_;
    std::unique_ptr<core::Offload> offload_;
    std::unique_ptr<fabric::Transport> transport_;

    // Used on the thread only.
    std::unique_ptr<fabric::SessionHost> host_;
    std::unique_ptr<ObjectClient> client_;
    bool client_closed_ = false;
    bool settled_ = false;  // client_ has had a session; from now on it reconnects by itself.
    bool stopping_ = false;
    std::uint64_t failures_ = 0;
    std::optional<Ended> last_failure_;
    std::optional<Ended> refusal_;  // A refusal that later attempts will not change.
    core::CancelSource cancel_;
    core::WaitQueue changed_;
    core::Gate gate_;
    core::Gate stop_gate_;

    std::mutex mutex_;
    std::optional<Ended> closed_;  // Set: no operation is accepted any more, for this reason.
    core::IntrusiveList<Operation> under_way_;  // Submitted, and not ended.
    Stop stop_{*this};
    std::thread thread_;
    std::thread::id id_;
};

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "client/interrupts.h"
#include "client/local_file.h"
#include "client/object_session.h"
#include "client/progress_line.h"
#include "client/time_ledger.h"
#include "client/transfer.h"
#include "client/verb.h"

namespace fopd::client {

// The options for the sessions of a verb.
ObjectSession::Options session_options(const Call& call);
// Advice for the user if the server cannot be reached or denies the session; empty: none.
std::string advice(const Call& call, ObjectSession::Failure::Kind kind);
// Prints the reason why there is no session. Returns the exit code.
int complain_about(const Call& call, const ObjectSession::Failure& failure);

// A session and threads for file I/O, shared by object verbs that are run one after another.
class SharedSession {
public:
    SharedSession() = default;
    SharedSession(const SharedSession&) = delete;
    SharedSession& operator=(const SharedSession&) = delete;

    // Returns the open session if it has the same options; otherwise replaces it by a new session.
    std::expected<ObjectSession*, ObjectSession::Failure> open(
        const ObjectSession::Options& options);
    // Closes the session; the next open() connects again. A session whose key was refused stays
    // refused, so it must be closed before another try.
    void close() {
        offload_.reset();  // Its thread may be about to leave the session's reactor.
        session_.reset();
    }
    Result<core::Offload*> offload();
    // Waits until the descriptor is readable, while the session stays alive. False: a signal
    // arrived.
    bool wait(int fd, Interrupts& interrupts);

private:
    ObjectSession::Options options_;  // Of the session.
    std::unique_ptr<ObjectSession> session_;
    std::unique_ptr<core::Offload> offload_;
};

// A run of an object verb in a session. A signal ends it.
class ObjectRun {
public:
    ObjectRun(const Call& asked, ObjectSession& connected, core::Offload& files,
              Interrupts& interrupts)
        : call(asked),
          arguments(asked.arguments),
          session(connected),
          objects(connected.objects()),
          reactor(connected.reactor()),
          offload(files),
          interrupts_(interrupts) {}

    using Body = Task<int> (*)(ObjectRun*);
    int operator()(Body body) { return session.run(guarded(body)); }

    ObjectClient::Wait wait() {
        return {.deadline = after(reactor.now(), call.timeout), .cancel = &cancel};
    }
    LocalWorld local() { return {.reactor = reactor, .offload = offload, .cancel = cancel}; }
    TransferOptions transfer() { return {.patience = call.timeout, .cancel = &cancel}; }
    const std::string& name() const { return arguments.names.front(); }

    Task<Outcome<ObjectInfo>> find(std::string name) {
        std::string pool = arguments.pool;
        return objects.lookup(std::move(pool), std::move(name), wait());
    }

    // Prints the reason of a failure, after the name of the object if it is not empty. A name is
    // only given for objects: the server's words name the cartridge or drive. Returns the exit
    // code.
    int complain_about(std::string_view name, const Problem& problem) const;
    int complain_about(const Problem& problem) const;
    // Prints the result with --json. Returns the exit code.
    int done(nlohmann::ordered_json result);
    int done(const Outcome<void>& outcome, const nlohmann::ordered_json& result);
    // Whether a result was printed with --json.
    bool has_result() const { return has_result_; }
    ProgressLine::Options progress(std::uint64_t total_bytes) const;

    const Call& call;
    const VerbArguments& arguments;
    ObjectSession& session;
    ObjectClient& objects;
    core::Reactor& reactor;
    core::Offload& offload;
    core::CancelSource cancel;
    const TimeLedger* times = nullptr;  // With --explain.

private:
    Task<int> guarded(Body body);
    Task<void> watch();

    Interrupts& interrupts_;
    core::CancelSource ended_;
    bool has_result_ = false;
};

// Runs the verb in a session, unless a name among its arguments is invalid. Returns the exit code.
int run_object_verb(const Call& call, ObjectRun::Body body);

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "client/endpoint.h"
#include "client/object_client.h"
#include "core/cancel.h"
#include "core/clock.h"
#include "core/offload.h"
#include "core/reactor.h"

namespace fopd::client {

// An ObjectClient with its event loop and transport, on the calling thread: for programs that do
// one thing at a time. libfopd uses SessionThread instead.
class ObjectSession {
public:
    struct Failure {
        enum class Kind : std::uint8_t {
            kUsage,
            kUnreachable,
            kDenied,
            kNotFound,  // The server has no such locality.
            kTryAgain,
            kFailed,
        };
        Kind kind = Kind::kFailed;
        std::string words;  // Safe for a terminal.
    };
    struct Options {
        EndpointText endpoint{};
        std::string job{};
        Duration connect_max{30s};
        fabric::TimesUser* times = nullptr;  // As in ObjectClientOptions.
        int interrupt_fd = -1;               // open() fails when it becomes readable; -1: never.
    };

    // Waits for a session with the server.
    static std::expected<std::unique_ptr<ObjectSession>, Failure> open(const Options& options);
    // Ends the sessions.
    ~ObjectSession();
    ObjectSession(const ObjectSession&) = delete;
    ObjectSession& operator=(const ObjectSession&) = delete;

    core::Reactor& reactor() { return *reactor_; }
    const core::Clock& clock() const { return clock_; }
    ObjectClient& objects() { return *objects_; }
    core::Entropy& entropy() { return entropy_; }

    template <typename T>
    T run(Task<T> task) {
        return reactor_->run_until_done(std::move(task));
    }

private:
    ObjectSession() = default;
    std::expected<void, Failure> connect(const Options& options);
    std::expected<void, Failure> try_host(const Options& options, const Endpoint& endpoint,
                                          Instant deadline);
    Task<Result<void>> connected(Instant deadline, int interrupt_fd);
    void close_objects();

    core::PosixClock clock_;
    core::SystemEntropy entropy_;
    core::NullEventSink events_;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<fabric::Transport> transport_;
    std::unique_ptr<fabric::SessionHost> host_;
    std::unique_ptr<ObjectClient> objects_;
};

}  // namespace fopd::client

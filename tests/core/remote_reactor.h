#pragma once

#include <memory>
#include <thread>

#include "core/remote.h"
#include "tests/core/reactor_kinds.h"

namespace fopd::core::testing {

struct StopMessage final : Message {
    explicit StopMessage(Reactor& owner) : Message(&on_deliver), reactor(owner) {}
    static void on_deliver(Message& message) { static_cast<StopMessage&>(message).reactor.stop(); }
    Reactor& reactor;
};

// A reactor on a thread of its own.
class RemoteReactor {
public:
    explicit RemoteReactor(Kind kind, ReactorOptions options = {}, UringOptions uring = {})
        : reactor_(make_real_reactor(kind, options, uring)), thread_([this] { reactor_->run(); }) {}
    ~RemoteReactor() { stop(); }
    void stop() {
        if (!thread_.joinable()) return;
        StopMessage message(*reactor_);
        reactor_->post(message);
        thread_.join();
    }
    Reactor& reactor() { return *reactor_; }

private:
    std::unique_ptr<Reactor> reactor_;
    std::thread thread_;
};

inline Task<int> remote_results(Reactor* here, Reactor* there) {
    int calls = 0;
    auto nothing = [&calls] { ++calls; };
    co_await run_on(*here, *there, nothing);
    auto movable = [&calls] { return std::make_unique<int>(++calls); };
    const std::unique_ptr<int> owned = co_await run_on(*here, *there, movable);
    auto fallible = [&calls]() -> Result<int> { return ++calls; };
    const Result<int> result = co_await run_on(*here, *there, fallible);
    co_return *owned * 100 + *result * 10 + calls;
}

}  // namespace fopd::core::testing

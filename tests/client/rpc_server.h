#pragma once

#include <string>
#include <vector>

#include "fabric/tcp/tcp_transport.h"
#include "tests/fabric/rpc_stage.h"

namespace fopd::client::testing {

// A server over tcp on the loopback device, on a thread of its own, which echoes.
class RpcServer {
public:
    explicit RpcServer(fabric::Admission admission, std::string listen_at = "tcp://127.0.0.1:0")
        : transport_(fabric::make_tcp_transport(
              events_, {.random_key = [this] { return entropy_.number(); }})) {
        start(std::move(admission), 1, listen_at);
    }
    ~RpcServer() { stop(); }

    void start(fabric::Admission admission, std::uint64_t incarnation,
               const std::string& listen_at) {
        loop_.run([&] {
            side_.emplace(*transport_, loop_.reactor(), std::move(admission), options(),
                          incarnation, listen_at);
            address_ = fabric::format_address(side_->acceptor->address());
        });
    }
    void stop() {
        if (!side_) return;
        release();
        core::Gate gate;
        loop_.run([&] { loop_.reactor().spawn(gate, side_->stop()); });
        CHECK(loop_.wait([&] { return gate.count() == 0; }));
        loop_.run([&] { side_.reset(); });
    }

    // Fops that come from now on wait until release().
    void hold() {
        loop_.run([this] { side_->foms.hold = true; });
    }
    bool wait_held(std::size_t count) {
        return loop_.wait([&] { return side_->foms.held.size() >= count; });
    }
    // What the first of them showed.
    std::vector<std::byte> held_token() {
        std::vector<std::byte> token;
        loop_.run([&] {
            const auto shown = side_->foms.held.front()->request().token;
            token.assign(shown.begin(), shown.end());
        });
        return token;
    }
    void release() {
        loop_.run([this] {
            side_->foms.hold = false;
            for (fabric::IncomingFop* each : std::exchange(side_->foms.held, {})) {
                each->reply({.status = fop::Status::kBusy, .words = "it was \x1b held"});
            }
        });
    }
    bool wait_sessions(std::size_t count) {
        return loop_.wait([this, count] { return side_->host.session_count() == count; });
    }

    const std::string& address() const { return address_; }

private:
    static fabric::HostOptions options() {
        fabric::HostOptions options;
        options.machine.receive_buffer_count = 256;
        return options;
    }

    core::NullEventSink events_;
    core::SystemEntropy entropy_;
    std::unique_ptr<fabric::Transport> transport_;
    fabric::testing::RealLoop loop_;
    std::optional<fabric::testing::ServerSide> side_;
    std::string address_;
};

}  // namespace fopd::client::testing

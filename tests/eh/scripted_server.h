#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "core/owned_fd.h"

namespace fopd::eh::testing {

// A TCP connection that blocks.
class Connection {
public:
    explicit Connection(int fd) : fd_(fd) {}

    // Connects to a port of this machine.
    static Connection to(std::uint16_t port);
    // One HTTP request, whole; empty if the other side closed first.
    std::string read_request();
    // What is there, at least a byte; empty when the other side has closed.
    std::string read_some();
    // False when the other side has closed.
    bool write(std::string_view text);
    // Returns true when the other side has closed, false after this time.
    bool is_closed_within(int ms);

private:
    core::OwnedFd fd_;
};

// A server whose answers are a function of the test, called for one connection after the other on a
// thread of its own.
class ScriptedServer {
public:
    explicit ScriptedServer(std::function<void(Connection&)> serve);
    ~ScriptedServer();
    ScriptedServer(const ScriptedServer&) = delete;
    ScriptedServer& operator=(const ScriptedServer&) = delete;

    std::uint16_t port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

private:
    core::OwnedFd listener_;
    std::uint16_t port_ = 0;
    std::thread thread_;
};

}  // namespace fopd::eh::testing

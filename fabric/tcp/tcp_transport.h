#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/events.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class Sockets;

struct TcpOptions {
    // Returns an unpredictable key for opened memory. Called from every thread that has a machine.
    std::function<std::uint64_t()> random_key;
    // Null: the kernel's. They outlive the transport.
    Sockets* sockets = nullptr;
};

// Connections over TCP, on the reactor of each machine. Addresses have the scheme
// "tcp" and are numeric, because resolving host names blocks.
std::unique_ptr<Transport> make_tcp_transport(core::EventSink& events, TcpOptions options);

}  // namespace fopd::fabric

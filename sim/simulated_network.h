#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/events.h"
#include "core/virtual_world.h"
#include "fabric/mem/mem_sockets.h"
#include "fabric/mem/mem_transport.h"
#include "fop/protection.h"

namespace fopd::sim {

// How messages travel in a simulated world.
enum class Wire : std::uint8_t {
    kMessages,   // Whole, by the transport `mem`.
    kSealed,     // By the transport `tcp`: in its frames, over streams that are cut into parts.
    kEncrypted,  // By `tcp`, encrypted.
};

// How it is in the world of this seed: in half of them, in the frames of `tcp`.
Wire draw_wire(std::uint64_t seed);

struct SimulatedNetworkOptions {
    std::uint64_t seed = 0;
    fabric::DelayRange delay;
    Wire wire = Wire::kMessages;
};

// The network of a simulated world: its hosts by name, the links between them, and a transport that
// all of them use.
class SimulatedNetwork {
public:
    // The world outlives it.
    SimulatedNetwork(core::VirtualWorld& world, const SimulatedNetworkOptions& options);
    SimulatedNetwork(const SimulatedNetwork&) = delete;
    SimulatedNetwork& operator=(const SimulatedNetwork&) = delete;

    fabric::Transport& transport() { return tcp_ == nullptr ? mem_ : *tcp_; }
    fabric::MemNetwork& links() { return mem_.network(); }
    fop::Protection protection() const { return protection_; }
    // Where a host listens, and is connected to.
    fabric::Address address_of(const std::string& host, std::uint16_t port);
    // Null with Wire::kMessages.
    const fabric::MemSockets* sockets() const { return sockets_ ? &*sockets_ : nullptr; }

private:
    fabric::MemTransport mem_;
    core::NullEventSink events_;
    const fop::Protection protection_;
    std::optional<fabric::MemSockets> sockets_;
    std::unique_ptr<fabric::Transport> tcp_;  // Null with Wire::kMessages.
};

}  // namespace fopd::sim

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/events.h"
#include "core/random.h"
#include "core/virtual_world.h"
#include "fabric/mem/mem_sockets.h"
#include "fabric/tcp/tcp_transport.h"

namespace fopd::fabric::testing {

inline std::uint64_t next_key() {
    static std::atomic<std::uint64_t> keys = 0;
    return core::mix(7, ++keys);
}

// `tcp` over the sockets of a simulated world, between hosts "server" and "client".
class SimulatedTcp final : public Transport {
public:
    explicit SimulatedTcp(core::VirtualWorld& world) : sockets_(world, network_, world.seed()) {
        sockets_.address_of("server", 0);  // It is 10.0.0.1.
    }

    const char* name() const override { return tcp_->name(); }
    bool can_encrypt() const override { return tcp_->can_encrypt(); }
    Result<std::unique_ptr<TransferMachine>> make_machine(core::Reactor& reactor,
                                                          MessageUser& messages,
                                                          const MachineOptions& options) override {
        return tcp_->make_machine(reactor, messages, options);
    }
    Result<std::unique_ptr<Acceptor>> listen(core::Reactor& reactor, const Address& address,
                                             RequestUser& requests,
                                             const AcceptorOptions& options) override {
        return tcp_->listen(reactor, address, requests, options);
    }
    MemNetwork& network() { return network_; }
    MemSockets& sockets() { return sockets_; }

private:
    MemNetwork network_{{.seed = 7, .delay = kSimulatedDelay}};
    MemSockets sockets_;
    core::NullEventSink events_;
    std::unique_ptr<Transport> tcp_ =
        make_tcp_transport(events_, {.random_key = &next_key, .sockets = &sockets_});
};

inline std::unique_ptr<Transport> make_simulated_tcp(core::VirtualWorld* world) {
    return std::make_unique<SimulatedTcp>(*world);
}

}  // namespace fopd::fabric::testing

#pragma once

#include "fabric/mem/mem_network.h"
#include "fabric/transport.h"

namespace fopd::fabric {

// The transport within a process: between the threads of a real one, and between the simulated
// processes of a virtual world, where the same seed gives the same run. An address is
// mem://HOST:PORT, with any name as its host.
//
// A simulated process may end at any time: its machines, acceptors, connections and requests can be
// destroyed in any state and order while others exist. For others this looks like the end of a
// process on another host.
class MemTransport final : public Transport {
public:
    explicit MemTransport(const MemNetworkOptions& options = {}) : network_(options) {}

    const char* name() const override { return "mem"; }
    Result<std::unique_ptr<TransferMachine>> make_machine(core::Reactor& reactor,
                                                          MessageUser& messages,
                                                          const MachineOptions& options) override;
    Result<std::unique_ptr<Acceptor>> listen(core::Reactor& reactor, const Address& address,
                                             RequestUser& requests,
                                             const AcceptorOptions& options) override;

    MemNetwork& network() { return network_; }

private:
    MemNetwork network_;
};

}  // namespace fopd::fabric

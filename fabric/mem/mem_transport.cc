#include "fabric/mem/mem_transport.h"

#include "fabric/mem/mem_acceptor.h"
#include "fabric/mem/mem_machine.h"

namespace fopd::fabric {

Result<std::unique_ptr<TransferMachine>> MemTransport::make_machine(core::Reactor& reactor,
                                                                    MessageUser& messages,
                                                                    const MachineOptions& options) {
    MemStation& station = network_.make_station(reactor, options.host);
    return std::make_unique<MemMachine>(network_, reactor, station, messages, options);
}

Result<std::unique_ptr<Acceptor>> MemTransport::listen(core::Reactor& reactor,
                                                       const Address& address,
                                                       RequestUser& requests,
                                                       const AcceptorOptions&) {
    if (address.scheme != kMemScheme) {
        return std::unexpected(Error{.code = Errc::kInvalid, .context = "not a mem:// address"});
    }
    MemStation& station = network_.make_station(reactor, address.host);
    Address bound = address;
    bound.port = network_.occupy(address.host, address.port, station);
    if (bound.port == 0) {
        station.close();
        return std::unexpected(Error{.code = Errc::kBusy, .context = "the address is in use"});
    }
    return std::make_unique<MemAcceptor>(network_, reactor, station, std::move(bound), requests);
}

}  // namespace fopd::fabric

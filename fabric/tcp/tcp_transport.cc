#include "fabric/tcp/tcp_transport.h"

#include <utility>

#include "fabric/tcp/kernel_sockets.h"
#include "fabric/tcp/tcp_acceptor.h"
#include "fabric/tcp/tcp_machine.h"

namespace fopd::fabric {

namespace {

class TcpTransport final : public Transport {
public:
    TcpTransport(core::EventSink& events, TcpOptions options)
        : events_(events), options_(std::move(options)) {
        ENSURE(options_.random_key);
    }

    const char* name() const override { return "tcp"; }
    bool can_encrypt() const override { return true; }

    Result<std::unique_ptr<TransferMachine>> make_machine(core::Reactor& reactor,
                                                          MessageUser& messages,
                                                          const MachineOptions& options) override {
        return std::make_unique<TcpMachine>(reactor, messages, options, options_, sockets());
    }

    Result<std::unique_ptr<Acceptor>> listen(core::Reactor& reactor, const Address& address,
                                             RequestUser& requests,
                                             const AcceptorOptions& options) override {
        auto acceptor =
            std::make_unique<TcpAcceptor>(events_, reactor, requests, options, sockets());
        if (const auto ready = acceptor->open(address); !ready) {
            return std::unexpected(ready.error());
        }
        return acceptor;
    }

private:
    Sockets& sockets() { return options_.sockets == nullptr ? kernel_ : *options_.sockets; }

    core::EventSink& events_;
    const TcpOptions options_;
    KernelSockets kernel_;
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(core::EventSink& events, TcpOptions options) {
    return std::make_unique<TcpTransport>(events, std::move(options));
}

}  // namespace fopd::fabric

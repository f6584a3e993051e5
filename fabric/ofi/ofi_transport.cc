#include <utility>

#include "core/ensure.h"
#include "fabric/build_fingerprint.h"
#include "fabric/ofi/ofi_acceptor.h"
#include "fabric/ofi/ofi_machine.h"
#include "fabric/ofi/ofi_provider.h"
#include "fabric/ofi_plug_in.h"

namespace fopd::fabric {

namespace {

class OfiTransport final : public Transport {
public:
    OfiTransport(core::EventSink& events, OfiOptions options)
        : provider_{.events = events,
                    .options = std::move(options),
                    .info = {},
                    .fabric = {},
                    .frees_reads_twice = false},
          opened_(provider_.open()) {
        ENSURE(provider_.options.random_key);
    }

    const char* name() const override { return "ofi"; }

    Result<std::unique_ptr<TransferMachine>> make_machine(core::Reactor& reactor,
                                                          MessageUser& messages,
                                                          const MachineOptions& options) override {
        if (!opened_) return std::unexpected(opened_.error());
        auto machine = std::make_unique<OfiMachine>(provider_, reactor, messages);
        if (const auto ready = machine->open(options); !ready) {
            return std::unexpected(ready.error());
        }
        return machine;
    }

    Result<std::unique_ptr<Acceptor>> listen(core::Reactor& reactor, const Address& address,
                                             RequestUser& requests,
                                             const AcceptorOptions& options) override {
        if (!opened_) return std::unexpected(opened_.error());
        auto acceptor = std::make_unique<OfiAcceptor>(provider_, reactor, requests, options);
        if (const auto ready = acceptor->open(address); !ready) {
            return std::unexpected(ready.error());
        }
        return acceptor;
    }

private:
    Provider provider_;
    const Result<void> opened_;
};

std::unique_ptr<Transport> make(core::EventSink& events, OfiOptions options) {
    return std::make_unique<OfiTransport>(events, std::move(options));
}

}  // namespace

// Its name is kOfiPlugInSymbol.
extern "C" {
[[gnu::visibility("default")]] extern const OfiPlugIn fopd_ofi_plug_in_1;
const OfiPlugIn fopd_ofi_plug_in_1{.build = kBuild, .make = &make};
}

}  // namespace fopd::fabric

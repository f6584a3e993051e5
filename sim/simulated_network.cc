#include "sim/simulated_network.h"

#include "fabric/tcp/tcp_transport.h"

namespace fopd::sim {

Wire draw_wire(std::uint64_t seed) {
    core::Random random(core::mix(seed, 3));
    switch (random.below(4)) {
        case 0: return Wire::kSealed;
        case 1: return Wire::kEncrypted;
        default: return Wire::kMessages;
    }
}

SimulatedNetwork::SimulatedNetwork(core::VirtualWorld& world,
                                   const SimulatedNetworkOptions& options)
    : mem_({.seed = options.seed, .delay = options.delay}),
      protection_(options.wire == Wire::kEncrypted ? fop::Protection::kEncrypt
                                                   : fop::Protection::kSeal) {
    if (options.wire == Wire::kMessages) return;
    sockets_.emplace(world, links(), core::mix(options.seed, 1));
    tcp_ = fabric::make_tcp_transport(
        events_, {.random_key = [keys = core::Random(
                                     core::mix(options.seed, 2))]() mutable { return keys.next(); },
                  .sockets = &*sockets_});
}

fabric::Address SimulatedNetwork::address_of(const std::string& host, std::uint16_t port) {
    if (sockets_) return sockets_->address_of(host, port);
    return {.scheme = fabric::kMemScheme, .host = host, .port = port, .locality = std::nullopt};
}

}  // namespace fopd::sim

#include "fabric/settings.h"

#include "config/problem.h"
#include "config/types.h"
#include "fabric/socket_address.h"

namespace fopd::fabric {

config::TypePtr<Address> address_type() {
    return std::make_shared<config::ScalarType<Address>>(
        "an address such as tcp://0.0.0.0:31470",
        [](const config::Node& scalar) -> std::expected<Address, config::Mistake> {
            const auto address = parse_address(scalar.text);
            if (!address) {
                return std::unexpected(
                    config::Mistake{.wrong = config::in_quotes(scalar.text) + " is not an address",
                                    .right = address.error().context});
            }
            if (address->locality) {
                return std::unexpected(config::Mistake{
                    .wrong = config::in_quotes(scalar.text) + " names a locality",
                    .right = "leave out the part after the port: clients name localities"});
            }
            if (address->scheme != kMemScheme && !socket_address(*address, address->scheme)) {
                return std::unexpected(
                    config::Mistake{.wrong = config::in_quotes(scalar.text) + " names a host",
                                    .right = "use a numeric address, such as 0.0.0.0"});
            }
            return *address;
        },
        [](const Address& address) { return config::quoted_scalar(format_address(address)); });
}

config::Section<FabricSettings> fabric_section() {
    config::Section<FabricSettings> section("fabric", "The network of clients.");
    section.field(
        "listen", &FabricSettings::listen,
        config::list_of(address_type(),
                        {.length_max = 16, .doubles = config::ListRule::Doubles::kRefused}),
        "Numeric addresses where clients connect: tcp:// on every network, verbs:// with RDMA "
        "hardware; ofi+tcp:// is TCP by libfabric, which trusts every host that reaches the port.");
    section.field(
        "inline_max", &FabricSettings::inline_max, config::size({.min = 0, .max = 12U << 10}),
        "The largest payload of a request that travels in its message; larger ones are read "
        "from the client's memory. Replies carry up to 32KiB, whatever this is.");
    section.field("lease", &FabricSettings::lease, config::duration({.min = 1s, .max = 1h}),
                  "A session whose client sends nothing for this time is ended. A client sends "
                  "something at least every half of it.");
    section.field("handshake_timeout", &FabricSettings::handshake_timeout,
                  config::duration({.min = 100ms, .max = 10min}),
                  "A client that has not authenticated within this time is disconnected.");
    section.field("protect", &FabricSettings::protection,
                  config::choice<fop::Protection>(
                      {{"seal", fop::Protection::kSeal}, {"encrypt", fop::Protection::kEncrypt}}),
                  "seal: each message is authenticated, and everyone on the path can read it. "
                  "encrypt: everything after the handshake is encrypted (AES-256-GCM); only over "
                  "tcp://. Clients with the other setting are refused.");
    section.check([](const FabricSettings& settings, config::Complaints& complaints) {
        for (const Address& each : settings.listen) {
            if (each.scheme == settings.listen.front().scheme) continue;
            complaints.add("listen", "addresses of different schemes", "use one for all of them");
            break;
        }
        if (settings.protection != fop::Protection::kEncrypt) return;
        for (const Address& each : settings.listen) {
            if (each.scheme == kTcpScheme) continue;
            complaints.add("protect", "encrypt with " + each.scheme + "://",
                           "listen at tcp://, which alone can be encrypted");
            return;
        }
    });
    return section;
}

}  // namespace fopd::fabric

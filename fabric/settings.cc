#include "fabric/settings.h"

#include "config/problem.h"
#include "config/types.h"

namespace fopd::fabric {

namespace {

config::TypePtr<Address> address_type() {
    return std::make_shared<config::ScalarType<Address>>(
        "an address such as tcp://0.0.0.0:31470",
        [](const config::Node& scalar) -> std::expected<Address, config::Mistake> {
            const auto address = parse_address(scalar.text);
            if (!address) {
                return std::unexpected(
                    config::Mistake{.wrong = config::in_quotes(scalar.text) + " is no address",
                                    .right = address.error().context});
            }
            if (address->locality) {
                return std::unexpected(config::Mistake{
                    .wrong = config::in_quotes(scalar.text) + " names a locality",
                    .right = "leave out the part after the port: clients name localities"});
            }
            return *address;
        },
        [](const Address& address) { return config::quoted_scalar(format_address(address)); });
}

}  // namespace

config::Section<FabricSettings> fabric_section() {
    config::Section<FabricSettings> section("fabric", "The network clients come by.");
    section.field("listen", &FabricSettings::listen,
                  config::list_of(address_type(), {.length_max = 16,
                                                   .doubles = config::ListRule::Doubles::kRefused}),
                  "Where clients connect: tcp:// on every network, verbs:// with RDMA hardware; "
                  "ofi+tcp:// is TCP by libfabric, which trusts every host that reaches it. "
                  "Numeric addresses.");
    section.field("inline_max", &FabricSettings::inline_max,
                  config::size({.min = 0, .max = 12U << 10}),
                  "Larger payloads are fetched from the client's memory, or placed in it, instead "
                  "of travelling in a message.");
    section.field("lease", &FabricSettings::lease, config::duration({.min = 1s, .max = 1h}),
                  "A silent peer is dead after this. Clients say something at half of it.");
    section.field("handshake_timeout", &FabricSettings::handshake_timeout,
                  config::duration({.min = 100ms, .max = 10min}),
                  "A client that has not proved its identity by then is disconnected.");
    section.field("protect", &FabricSettings::protection,
                  config::choice<fop::Protection>(
                      {{"seal", fop::Protection::kSeal}, {"encrypt", fop::Protection::kEncrypt}}),
                  "seal: each message proves its sender, and everybody on the way can read it. "
                  "encrypt: all that follows the handshake is encrypted (AES-256-GCM); only over "
                  "tcp://. Clients that want the other one are refused.");
    section.check([](const FabricSettings& settings, config::Complaints& complaints) {
        for (const Address& each : settings.listen) {
            if (each.scheme == settings.listen.front().scheme) continue;
            complaints.add("listen", "addresses of different schemes", "use one for all of them");
            return;
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

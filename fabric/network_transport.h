#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "core/events.h"
#include "core/result.h"
#include "fabric/address.h"
#include "fabric/transport.h"

namespace fopd::fabric {

// The schemes of addresses that other hosts can be reached by: "tcp", "verbs" and "ofi+tcp".
bool is_network_scheme(std::string_view scheme);
// Whether a stranger's bytes reach libfabric's tcp provider, which trusts them (docs/security.md).
bool trusts_strangers(std::string_view scheme);

// Finds out whether a transport could listen at the address: fails as its listen() would, and holds
// nothing on return. Waits for an address that a killed process still holds, and blocks meanwhile.
// Addresses of adapters (`verbs`) are not tried. REQUIRES: the address has such
// a scheme.
Result<void> try_address(const Address& address);

// The transport for addresses with this scheme: `tcp` is our own over plain sockets, `verbs` and
// `ofi+tcp` load libfabric. `random_key` returns an unpredictable key for opened memory; it is
// called from every thread that has a machine. REQUIRES: is_network_scheme(scheme).
std::unique_ptr<Transport> make_network_transport(std::string_view scheme, core::EventSink& events,
                                                  std::function<std::uint64_t()> random_key);

}  // namespace fopd::fabric

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

// Whether addresses with this scheme reach other hosts: "tcp", "verbs" and "ofi+tcp".
bool is_network_scheme(std::string_view scheme);
// Whether bytes from peers that have not authenticated reach libfabric's tcp provider, which does
// not validate them (docs/security.md).
bool trusts_strangers(std::string_view scheme);

// Tests whether a transport could listen at the address. Fails with the error of its listen(), and
// holds nothing on return. If a killed process still holds the address, blocks until it is free.
// Does not test addresses of RDMA adapters (`verbs`). REQUIRES: is_network_scheme() is true for the
// scheme of the address.
Result<void> try_address(const Address& address);

// The transport for addresses with this scheme: `tcp` is our own over plain sockets, `verbs` and
// `ofi+tcp` load libfabric. `random_key` returns an unpredictable key for opened memory; it is
// called from every thread that has a machine. REQUIRES: is_network_scheme(scheme).
std::unique_ptr<Transport> make_network_transport(std::string_view scheme, core::EventSink& events,
                                                  std::function<std::uint64_t()> random_key);

}  // namespace fopd::fabric

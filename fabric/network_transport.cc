#include "fabric/network_transport.h"

#include <utility>

#include <errno.h>

#include "core/ensure.h"
#include "core/killed_process.h"
#include "fabric/ofi_transport.h"
#include "fabric/socket_address.h"
#include "fabric/tcp/tcp_transport.h"

namespace fopd::fabric {

bool is_network_scheme(std::string_view scheme) {
    return scheme == kTcpScheme || scheme == kVerbsScheme || scheme == kOfiTcpScheme;
}

bool trusts_strangers(std::string_view scheme) {
    return scheme == kOfiTcpScheme;
}

Result<void> try_address(const Address& address) {
    ENSURE(is_network_scheme(address.scheme));
    if (address.scheme == kVerbsScheme) return {};
    Result<void> result;
    const auto listen = [&] {
        const auto tried = listening_socket(address, address.scheme, 1);
        result = tried ? Result<void>() : std::unexpected(tried.error());
        return tried ? 0 : tried.error().os_errno;
    };
    core::wait_for_killed_process(EADDRINUSE, listen);
    return result;
}

std::unique_ptr<Transport> make_network_transport(std::string_view scheme, core::EventSink& events,
                                                  std::function<std::uint64_t()> random_key) {
    ENSURE(is_network_scheme(scheme));
    if (scheme == kTcpScheme) {
        return make_tcp_transport(events, {.random_key = std::move(random_key)});
    }
    return make_ofi_transport(events,
                              {.scheme = std::string(scheme), .random_key = std::move(random_key)});
}

}  // namespace fopd::fabric

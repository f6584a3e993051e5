#include "fabric/network_transport.h"

#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "core/ensure.h"
#include "core/owned_fd.h"
#include "fabric/ofi/ofi_transport.h"
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
    const auto name = socket_address(address, address.scheme);
    if (!name) return std::unexpected(name.error());
    const core::OwnedFd socket(
        ::socket(name->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) return std::unexpected(os_error(errno, "socket"));
    const int on = 1;
    if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(socket.get(), name->get(), name->size) != 0) {
        return std::unexpected(os_error(errno, "bind"));
    }
    if (::listen(socket.get(), 1) != 0) return std::unexpected(os_error(errno, "listen"));
    return {};
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

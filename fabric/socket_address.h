#pragma once

#include <string>

#include <sys/socket.h>

#include "core/owned_fd.h"
#include "core/result.h"
#include "fabric/address.h"

namespace fopd::fabric {

// A socket's address, as the kernel has it.
struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = sizeof(sockaddr_storage);

    sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// kInvalid unless the address has this scheme and a numeric host; resolving a name would block.
Result<SocketAddress> socket_address(const Address& address, const std::string& scheme);
// A socket that listens at the address. kBusy: the address is in use.
Result<core::OwnedFd> listening_socket(const Address& address, const std::string& scheme,
                                       int backlog);
// The host is "unknown" if there is no address, or one that is not of the Internet.
Address address_of(const std::string& scheme, const sockaddr* address, std::size_t size_bytes);

}  // namespace fopd::fabric

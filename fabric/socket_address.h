#pragma once

#include <string>

#include <sys/socket.h>

#include "core/owned_fd.h"
#include "core/result.h"
#include "fabric/address.h"

namespace fopd::fabric {

// The address of a socket in the form of system calls.
struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = sizeof(sockaddr_storage);

    sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
    const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Converts an address for system calls. kInvalid: the address has another scheme, or its host is a
// name, because resolving names would block.
Result<SocketAddress> socket_address(const Address& address, const std::string& scheme);
// Makes a socket that listens at the address. kBusy: the address is in use.
Result<core::OwnedFd> listening_socket(const Address& address, const std::string& scheme,
                                       int backlog);
// Converts an address from a system call. The host is "unknown" if `address` is null or is not an
// IP address.
Address address_of(const std::string& scheme, const sockaddr* address, std::size_t size_bytes);

}  // namespace fopd::fabric

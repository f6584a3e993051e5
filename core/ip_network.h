#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace fopd::core {

// An IPv6 address in network byte order; IPv4 addresses are those of ::ffff:0:0/96.
using IpAddress = std::array<std::byte, 16>;

// None: the text is not an IPv6 address. An interface after % is ignored.
std::optional<IpAddress> parse_ipv6(std::string_view text);

// The key under which a host's addresses are counted: all addresses of a /64 count as one host,
// because a host may choose the lower half itself. An IPv4 address is unchanged.
IpAddress counted_as(const IpAddress& address);

}  // namespace fopd::core

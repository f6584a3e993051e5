#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace fopd::core {

// An IPv6 address as it is sent; IPv4 addresses are those of ::ffff:0:0/96.
using IpAddress = std::array<std::byte, 16>;

// Nothing when the text is no IPv6 address; an interface behind % is ignored.
std::optional<IpAddress> parse_ipv6(std::string_view text);

// The address with which all that one host may give itself are counted: those of a /64 are one
// host's, for it may choose the lower half. An IPv4 address stays as it is.
IpAddress counted_as(const IpAddress& address);

}  // namespace fopd::core

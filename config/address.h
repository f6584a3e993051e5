#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "config/problem.h"

namespace fopd::config {

// An address to listen at: an IPv4 or IPv6 address or a host name, not resolved here, and a port.
struct Address {
    std::string host;  // Without the brackets of an IPv6 address.
    std::uint16_t port = 0;

    friend bool operator==(const Address&, const Address&) = default;
};

// "127.0.0.1:9420", "[::1]:9420", "node-a.example:9420"; port 0 is "any".
std::expected<Address, Mistake> parse_address(std::string_view text);
std::string format_address(const Address& address);

}  // namespace fopd::config

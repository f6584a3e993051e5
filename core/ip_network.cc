#include "core/ip_network.h"

#include <algorithm>
#include <string>

#include <arpa/inet.h>

namespace fopd::core {

namespace {

constexpr std::size_t kNetworkBytes = 8;
constexpr std::size_t kIpv4PrefixBytes = 12;

bool is_ipv4(const IpAddress& address) {
    IpAddress prefix{};
    prefix[10] = prefix[11] = std::byte{0xff};
    return std::equal(address.begin(), address.begin() + kIpv4PrefixBytes, prefix.begin());
}

}  // namespace

std::optional<IpAddress> parse_ipv6(std::string_view text) {
    const std::string address(text.substr(0, text.find('%')));
    IpAddress bytes;
    if (::inet_pton(AF_INET6, address.c_str(), bytes.data()) != 1) return std::nullopt;
    return bytes;
}

IpAddress counted_as(const IpAddress& address) {
    IpAddress counted = address;
    if (!is_ipv4(address)) std::fill(counted.begin() + kNetworkBytes, counted.end(), std::byte{0});
    return counted;
}

}  // namespace fopd::core

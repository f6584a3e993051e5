#include "config/address.h"

#include <limits>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "config/units.h"

namespace fopd::config {
namespace {

constexpr const char* kExample =
    "write HOST:PORT such as 127.0.0.1:9420, [::1]:9420 or node-a:9420";
constexpr std::size_t kNameMax = 253;
constexpr std::size_t kLabelMax = 63;

bool is_alphanumeric(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// RFC 1123: labels of letters, digits and inner '-', joined by dots.
bool is_host_name(std::string_view name) {
    if (name.empty() || name.size() > kNameMax) return false;
    std::size_t label_length = 0;
    char last = '.';
    for (const char c : name) {
        if (c == '.') {
            if (label_length == 0 || last == '-') return false;
            label_length = 0;
        } else {
            if (!is_alphanumeric(c) && (c != '-' || label_length == 0)) return false;
            if (++label_length > kLabelMax) return false;
        }
        last = c;
    }
    return label_length > 0 && last != '-';
}

bool is_ip(int family, const std::string& text) {
    in6_addr parsed{};
    if (text.find('\0') != std::string::npos) return false;
    return inet_pton(family, text.c_str(), &parsed) == 1;
}

}  // namespace

std::expected<Address, Mistake> parse_address(std::string_view text) {
    const auto mistake = [](std::string wrong, const char* right = kExample) {
        return std::unexpected(Mistake{std::move(wrong), right});
    };
    if (text.find("://") != std::string_view::npos) return mistake(in_quotes(text) + " is a URL");
    const std::size_t colon = text.rfind(':');
    const bool bracket_last = text.ends_with(']');
    if (colon == std::string_view::npos || bracket_last)
        return mistake(in_quotes(text) + " has no port");
    std::string_view host = text.substr(0, colon);
    const auto port =
        parse_integer(text.substr(colon + 1), 0, std::numeric_limits<std::uint16_t>::max());
    if (!port) return mistake("port " + port.error().wrong, "write a port from 0 to 65535");
    if (host.empty() || host == "*") {
        return mistake(in_quotes(text) + " has no host",
                       "write 0.0.0.0 or [::] for every interface");
    }

    if (host.starts_with('[') && host.ends_with(']')) {
        Address address{std::string(host.substr(1, host.size() - 2)),
                        static_cast<std::uint16_t>(*port)};
        if (is_ip(AF_INET6, address.host)) return address;
        return mistake(in_quotes(host) + " is not an IPv6 address");
    }
    Address address{std::string(host), static_cast<std::uint16_t>(*port)};
    if (host.find(':') != std::string_view::npos) {
        return mistake(in_quotes(text) + " has more than one ':'",
                       "write an IPv6 address in brackets, such as [::1]:9420");
    }
    const bool numeric = host.find_first_not_of("0123456789.") == std::string_view::npos;
    if (numeric && !is_ip(AF_INET, address.host)) {
        return mistake(in_quotes(host) + " is not an IPv4 address");
    }
    if (!is_host_name(host)) return mistake(in_quotes(host) + " is not a host name");
    return address;
}

std::string format_address(const Address& address) {
    const bool ipv6 = address.host.find(':') != std::string::npos;
    const std::string host = ipv6 ? "[" + address.host + "]" : address.host;
    return host + ":" + std::to_string(address.port);
}

}  // namespace fopd::config

#include "fabric/address.h"

#include <algorithm>
#include <array>

#include "core/whole_number.h"

namespace fopd::fabric {

namespace {

std::unexpected<Error> mistake(const char* why) {
    return std::unexpected(Error{.code = Errc::kInvalid, .context = why});
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
    Address address;
    const std::size_t scheme_end = text.find("://");
    if (scheme_end == std::string_view::npos)
        return mistake("it has no scheme; write tcp://HOST:PORT");
    address.scheme = text.substr(0, scheme_end);
    constexpr std::array kSchemes{kTcpScheme, kVerbsScheme, kOfiTcpScheme, kMemScheme};
    if (std::ranges::find(kSchemes, address.scheme) == kSchemes.end()) {
        return mistake("schemes are tcp://, verbs:// and ofi+tcp://");
    }
    text.remove_prefix(scheme_end + 3);

    if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
        address.locality = core::whole_number<std::uint16_t>(text.substr(slash + 1));
        if (!address.locality) return mistake("a locality is a number from 0 to 65535");
        text = text.substr(0, slash);
    }
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || text.ends_with(']'))
        return mistake("the port is missing");
    const auto port = core::whole_number<std::uint16_t>(text.substr(colon + 1));
    if (!port) return mistake("a port is a number from 0 to 65535");
    address.port = *port;

    std::string_view host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        return mistake("an IPv6 address stands in brackets");
    }
    if (host.empty()) return mistake("the host is missing");
    for (const char each : host) {
        if (static_cast<unsigned char>(each) <= ' ' || each == '[' || each == ']' || each == 0x7f) {
            return mistake("the host has a character that no host name has");
        }
    }
    address.host = host;
    return address;
}

std::string format_address(const Address& address) {
    const bool bare = address.host.find(':') == std::string::npos;
    std::string text = address.scheme + "://";
    text += bare ? address.host : "[" + address.host + "]";
    text += ':' + std::to_string(address.port);
    if (address.locality) text += '/' + std::to_string(*address.locality);
    return text;
}

}  // namespace fopd::fabric

#include "fabric/rpc/handshake_places.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>

#include "core/ensure.h"
#include "core/ip_network.h"

namespace fopd::fabric {

std::string HandshakePlaces::host_of(std::string_view peer) {
    const std::string host(peer.substr(0, peer.rfind(':')));
    const std::size_t begin = host.find('[');
    if (begin == std::string::npos || !host.ends_with(']')) return host;
    const auto address =
        core::parse_ipv6(std::string_view(host).substr(begin + 1, host.size() - begin - 2));
    if (!address) return host;
    const core::IpAddress counted = core::counted_as(*address);
    std::array<char, INET6_ADDRSTRLEN> text{};
    const char* const written =
        ::inet_ntop(AF_INET6, counted.data(), text.data(), static_cast<socklen_t>(text.size()));
    ENSURE(written != nullptr);
    return host.substr(0, begin + 1) + written + ']';
}

HandshakePlaces::Host* HandshakePlaces::take(const std::string& host, Instant now) {
    while (!spent_.empty() && spent_.front().until <= now) {
        shares_.give_back(*spent_.front().host);
        spent_.pop_front();
    }
    return shares_.may_take(shares_.find(host)) ? &shares_.take(host) : nullptr;
}

bool HandshakePlaces::is_full_for(const std::string& host) {
    return shares_.find(host) == nullptr && !shares_.may_take(nullptr);
}

bool HandshakePlaces::free_failed() {
    const auto failed = std::ranges::find_if(
        spent_, [this](const Spent& each) { return shares_.has_most(*each.host); });
    if (failed == spent_.end()) return false;
    shares_.give_back(*failed->host);
    spent_.erase(failed);
    return true;
}

void HandshakePlaces::give_back_later(Host& host, Instant now) {
    spent_.push_back({.until = after(now, limits_.time_max), .host = &host});
}

}  // namespace fopd::fabric

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

bool HandshakePlaces::take(std::string_view host, Instant now) {
    while (!spent_.empty() && spent_.front().until <= now) {
        const Hosts::iterator over = spent_.front().host;
        spent_.pop_front();
        give_back(over);
    }
    const auto known = of_host_.find(host);
    const std::uint32_t own = known == of_host_.end() ? 0 : known->second;
    // A host may have as many as are left: one alone gets half of all places, the next one half of
    // the rest.
    if (own >= limits_.count_max - taken_) return false;
    if (known == of_host_.end()) {
        of_host_.emplace(host, 1);
    } else {
        ++known->second;
    }
    ++taken_;
    return true;
}

bool HandshakePlaces::is_full_for(std::string_view host) const {
    return taken_ == limits_.count_max && !of_host_.contains(host);
}

std::uint32_t HandshakePlaces::most() const {
    if (of_host_.empty()) return 0;
    return std::ranges::max_element(of_host_, {}, &Hosts::value_type::second)->second;
}

std::uint32_t HandshakePlaces::count_of(std::string_view host) const {
    const auto known = of_host_.find(host);
    return known == of_host_.end() ? 0 : known->second;
}

bool HandshakePlaces::free_failed() {
    const std::uint32_t count = most();
    const auto failed = std::ranges::find_if(
        spent_, [count](const Spent& each) { return each.host->second == count; });
    if (failed == spent_.end()) return false;
    const Hosts::iterator host = failed->host;
    spent_.erase(failed);
    give_back(host);
    return true;
}

void HandshakePlaces::give_back(Hosts::iterator host) {
    if (--host->second == 0) of_host_.erase(host);
    --taken_;
}

void HandshakePlaces::give_back(const std::string& host) {
    const auto known = of_host_.find(host);
    ENSURE(known != of_host_.end());
    give_back(known);
}

void HandshakePlaces::give_back_later(const std::string& host, Instant now) {
    const auto known = of_host_.find(host);
    ENSURE(known != of_host_.end());
    spent_.push_back({.until = after(now, limits_.time_max), .host = known});
}

}  // namespace fopd::fabric

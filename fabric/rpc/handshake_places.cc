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
        const Spent over = std::move(spent_.front());
        spent_.pop_front();
        give_back(over.host);
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

const std::string& HandshakePlaces::largest() const {
    ENSURE(!of_host_.empty());
    return std::ranges::max_element(of_host_, {}, &Hosts::value_type::second)->first;
}

bool HandshakePlaces::free_failed(std::string_view host) {
    const auto failed = std::ranges::find(spent_, host, &Spent::host);
    if (failed == spent_.end()) return false;
    const Spent freed = std::move(*failed);
    spent_.erase(failed);
    give_back(freed.host);
    return true;
}

void HandshakePlaces::give_back(const std::string& host) {
    const auto known = of_host_.find(host);
    ENSURE(known != of_host_.end());
    if (--known->second == 0) of_host_.erase(known);
    --taken_;
}

void HandshakePlaces::give_back_later(std::string host, Instant now) {
    spent_.push_back({.until = after(now, limits_.time_max), .host = std::move(host)});
}

}  // namespace fopd::fabric

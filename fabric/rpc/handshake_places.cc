#include "fabric/rpc/handshake_places.h"

#include "core/ensure.h"

namespace fopd::fabric {

std::string_view HandshakePlaces::host_of(std::string_view peer) {
    return peer.substr(0, peer.rfind(':'));
}

bool HandshakePlaces::take(std::string_view host, Instant now) {
    while (!spent_.empty() && spent_.front().until <= now) {
        const Spent over = std::move(spent_.front());
        spent_.pop_front();
        give_back(over.host);
    }
    const auto known = of_host_.find(host);
    const std::uint32_t own = known == of_host_.end() ? 0 : known->second;
    // One host alone has half of all places; the next one finds half of the rest.
    if (own >= limits_.count_max - taken_) return false;
    if (known == of_host_.end()) {
        of_host_.emplace(host, 1);
    } else {
        ++known->second;
    }
    ++taken_;
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

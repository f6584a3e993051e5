#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "core/time.h"
#include "fabric/host_shares.h"

namespace fopd::fabric {

// Bounds the number of connections in the handshake, in total and per host. This limit is separate
// from the limit on sessions, because a peer in the handshake has proved nothing yet. A failed
// handshake keeps its place for another `time_max`, unless a new host needs it, so that failed
// handshakes are limited in rate, too.
class HandshakePlaces {
public:
    struct Nothing {};
    using Host = HostShares<std::string, Nothing>::Host;
    struct Limits {
        std::uint32_t count_max = 0;
        Duration time_max{};  // The longest that a handshake may take.
    };

    explicit HandshakePlaces(const Limits& limits) : limits_(limits), shares_(limits.count_max) {}

    // The key under which a peer's host is counted: the address without its port. For IPv6 it is
    // the network, because one host may have all addresses of a /64.
    static std::string host_of(std::string_view peer);

    // Takes a place. Null when the host has used its share, or no place is free.
    Host* take(const std::string& host, Instant now);
    // Whether no place is left for a host that has none.
    bool is_full_for(const std::string& host);
    // Whether no host has more places.
    bool has_most(const Host& host) const { return shares_.has_most(host); }
    // Frees the place of the oldest failed handshake among the hosts that have the most; false if
    // these hosts have none.
    bool free_failed();
    // Frees the place of a handshake that became a session.
    void give_back(Host& host) { shares_.give_back(host); }
    // Marks the place of a failed handshake: the first take() after `time_max` frees it.
    void give_back_later(Host& host, Instant now);

    std::size_t taken() const { return shares_.taken(); }

private:
    struct Spent {
        Instant until;
        Host* host;
    };

    const Limits limits_;
    HostShares<std::string, Nothing> shares_;
    std::deque<Spent> spent_;  // Places of failed handshakes, the first to be freed first.
};

}  // namespace fopd::fabric

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "core/time.h"

namespace fopd::fabric {

// Bounds the number of connections in the handshake, in total and per host. This limit is separate
// from the limit on sessions, because a peer in the handshake has proved nothing yet. A failed
// handshake keeps its slot for another `time_max`, unless a new host needs it, so that failed
// handshakes are limited in rate, too.
class HandshakePlaces {
public:
    struct Limits {
        std::uint32_t count_max = 0;
        Duration time_max{};  // The longest that a handshake may take.
    };

    explicit HandshakePlaces(const Limits& limits) : limits_(limits) {}

    // The key under which a peer's host is counted: the address without its port. For IPv6 it is
    // the network, because one host may have all addresses of a /64.
    static std::string host_of(std::string_view peer);

    // Takes a slot. False when the host has used its share, or no slot is free.
    bool take(std::string_view host, Instant now);
    // Whether no slot is left for a host that has none.
    bool is_full_for(std::string_view host) const;
    // The number of slots of a host, and of the host with the most.
    std::uint32_t count_of(std::string_view host) const;
    std::uint32_t most() const;
    // Frees the slot of the oldest failed handshake among the hosts that have the most; false if
    // these hosts have none.
    bool free_failed();
    // Frees the slot of a handshake that became a session.
    void give_back(const std::string& host);
    // Marks the slot of a failed handshake: the first take() after `time_max` frees it.
    void give_back_later(const std::string& host, Instant now);

    std::uint32_t taken() const { return taken_; }

private:
    using Hosts = std::map<std::string, std::uint32_t, std::less<>>;
    struct Spent {
        Instant until;
        Hosts::iterator host;
    };
    void give_back(Hosts::iterator host);

    const Limits limits_;
    Hosts of_host_;            // How many slots each has.
    std::deque<Spent> spent_;  // Slots of failed handshakes, the first to be freed first.
    std::uint32_t taken_ = 0;  // Includes the slots in spent_.
};

}  // namespace fopd::fabric

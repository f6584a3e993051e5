#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "core/time.h"

namespace fopd::fabric {

// How many connections may be on their way to a session, in all and from one address: they are
// bounded apart from sessions, because whoever makes them has proved nothing. A handshake that came
// to nothing keeps its place for as long as one may take, so that places are a rate as well.
class HandshakePlaces {
public:
    struct Limits {
        std::uint32_t count_max = 0;
        Duration time_max{};  // Of a handshake.
    };

    explicit HandshakePlaces(const Limits& limits) : limits_(limits) {}

    // The host in the text of an address with a port.
    static std::string_view host_of(std::string_view peer);

    // False when this host has its share, or there is no place left.
    bool take(std::string_view host, Instant now);
    // It has come to a session.
    void give_back(const std::string& host);
    // It has come to nothing.
    void give_back_later(std::string host, Instant now);

    std::uint32_t taken() const { return taken_; }

private:
    struct Spent {
        Instant until;
        std::string host;
    };

    const Limits limits_;
    std::map<std::string, std::uint32_t, std::less<>> of_host_;
    std::deque<Spent> spent_;  // In the order of their time.
    std::uint32_t taken_ = 0;  // Those that are spent, too.
};

}  // namespace fopd::fabric

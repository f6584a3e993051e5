#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/reactor.h"
#include "core/time.h"

namespace fopd::fabric {

struct MemLink;
struct MemPacket;
class MemStation;

// How long something is on its way; drawn anew each time. What one connection sends stays in order.
struct DelayRange {
    Duration min{0};
    Duration max{0};
};

// What hosts in one building of a simulated world have between them.
inline constexpr DelayRange kSimulatedDelay{.min = 20us, .max = 100us};

struct MemNetworkOptions {
    std::uint64_t seed = 0;  // Of the delays.
    DelayRange delay;        // Of every link that is not told otherwise.
};

// What goes from one host to another. The way back is a link of its own.
struct MemRoute {
    std::string_view from;
    std::string_view to;
};

// Who learns that connections are lost.
enum class LossNotice : std::uint8_t {
    kBoth,
    kFrom,  // Only the host a route is `from`; the other side hears of it when it next sends.
};

// The network of a MemTransport: hosts are names, and each pair of them has a link each way, whose
// properties may be set from any thread at any time. Nothing is ever lost or reordered within a
// connection, as with TCP; what cannot pass waits until it can.
class MemNetwork {
public:
    explicit MemNetwork(const MemNetworkOptions& options);
    ~MemNetwork();
    MemNetwork(const MemNetwork&) = delete;
    MemNetwork& operator=(const MemNetwork&) = delete;

    // For what arrives from now on.
    void set_delay(const MemRoute& route, const DelayRange& delay);
    // What a machine gets at most over this link; 0 means no limit.
    void set_bandwidth(const MemRoute& route, std::uint64_t bytes_per_second);
    // Nothing passes before `until`, on the reactors' time line.
    void stall(const MemRoute& route, Instant until);
    // Nothing passes and nobody is told, until unblock(). The way back is not touched.
    void block(const MemRoute& route);
    void unblock(const MemRoute& route);
    // Both ways.
    void partition(const MemRoute& route);
    void heal(const MemRoute& route);
    // Whether `to` answers the connects of `from` as if nobody listened.
    void refuse_connects(const MemRoute& route);
    void allow_connects(const MemRoute& route);
    // Ends the connections between the two hosts, whoever made them.
    void lose_connections(const MemRoute& route, LossNotice notice);

private:
    friend class MemTransport;
    friend class MemMachine;
    friend class MemAcceptor;
    // Host and port.
    using Place = std::pair<std::string, std::uint16_t>;

    MemStation& make_station(core::Reactor& reactor, const std::string& host);
    MemLink& link(const MemRoute& route);
    // The port it got, or 0 when the place is taken.
    std::uint16_t occupy(const std::string& host, std::uint16_t port, MemStation& station);
    void vacate(const std::string& host, std::uint16_t port);
    // Hands a request to connect to who listens there; back to the caller when nobody does.
    std::unique_ptr<MemPacket> deliver_request(const Place& place,
                                               std::unique_ptr<MemPacket> packet);
    // Has the machines at both ends look at the link again.
    void nudge_ends(const MemRoute& route);
    void drop_at(std::string_view host, std::string_view peer);
    std::vector<MemStation*> stations_of(std::string_view host);

    const MemNetworkOptions options_;
    // Of what is found by name, below; what is on its way needs none.
    std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, std::unique_ptr<MemLink>> links_;
    // Of every machine and acceptor there ever was: what is on its way may still name one that is
    // gone.
    std::vector<std::unique_ptr<MemStation>> stations_;
    std::map<Place, MemStation*> listening_;
};

}  // namespace fopd::fabric

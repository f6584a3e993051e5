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

// The delay of a packet, drawn for each one. Packets of one connection stay in order.
struct DelayRange {
    Duration min{0};
    Duration max{0};
};

// The delay between hosts of one building in a simulated world.
inline constexpr DelayRange kSimulatedDelay{.min = 20us, .max = 100us};

struct MemNetworkOptions {
    std::uint64_t seed = 0;  // For the delays.
    DelayRange delay;        // For links without a delay of their own.
    // Whether transfers can be given up and opened memory can be taken back. False simulates RDMA.
    bool can_give_up = true;
};

// A link from one host to another. The way back is a separate link.
struct MemRoute {
    std::string_view from;
    std::string_view to;
};

// The sides that learn at once that a connection is lost.
enum class LossNotice : std::uint8_t {
    kBoth,
    kFrom,  // Only the `from` host of a route; the other side notices when it sends the next time.
};

// The network of a MemTransport. Hosts are names; each pair of hosts has a link in each direction,
// whose properties any thread may set at any time. As with TCP, nothing is lost or reordered within
// a connection; a packet that cannot pass waits.
//
//     network.partition({.from = "a", .to = "b"});  // Connections stall.
//     network.lose_connections({.from = "a", .to = "b"}, LossNotice::kBoth);  // They end.
class MemNetwork {
public:
    // Notified of changes to the links, on the thread that made the change.
    class Watcher {
    public:
        virtual void on_links_changed() = 0;
        // `host` lost its connections with `peer`; the peer was not told.
        virtual void on_lost(std::string_view host, std::string_view peer) = 0;

    protected:
        ~Watcher() = default;
    };

    explicit MemNetwork(const MemNetworkOptions& options);
    ~MemNetwork();
    MemNetwork(const MemNetwork&) = delete;
    MemNetwork& operator=(const MemNetwork&) = delete;

    // Null: there is none. For the simulated world, which has one thread.
    void watch(Watcher* watcher) { watcher_ = watcher; }

    // Sets the delay of packets that are sent from now on.
    void set_delay(const MemRoute& route, const DelayRange& delay);
    // The bandwidth of one machine over this link; 0: no limit.
    void set_bandwidth(const MemRoute& route, std::uint64_t bytes_per_second);
    // Delivers nothing before `until`, on the reactors' clock.
    void stall(const MemRoute& route, Instant until);
    // Holds messages on the route back until unblock(), and reports no error to either side. The
    // opposite route still works.
    void block(const MemRoute& route);
    void unblock(const MemRoute& route);
    // Blocks both directions.
    void partition(const MemRoute& route);
    void heal(const MemRoute& route);
    // Refuses, or allows again, connections from `from` to `to`, as if nothing were listening.
    void refuse_connects(const MemRoute& route);
    void allow_connects(const MemRoute& route);
    // Ends the connections between the two hosts, in whichever direction they were made.
    void lose_connections(const MemRoute& route, LossNotice notice);

private:
    friend class MemTransport;
    friend class MemConnection;
    friend class MemMachine;
    friend class MemAcceptor;
    friend class MemSockets;
    using HostPort = std::pair<std::string, std::uint16_t>;

    MemStation& make_station(core::Reactor& reactor, const std::string& host);
    MemLink& link(const MemRoute& route);
    // Registers a station; returns its port, or 0 if the address is in use.
    std::uint16_t occupy(const std::string& host, std::uint16_t port, MemStation& station);
    void vacate(const std::string& host, std::uint16_t port);
    // Delivers a request to connect to the station at that host and port. Returns the packet if no
    // station listens there.
    std::unique_ptr<MemPacket> deliver_request(const HostPort& at,
                                               std::unique_ptr<MemPacket> packet);
    // Makes the machines at both ends check the link again.
    void nudge_ends(const MemRoute& route);
    void drop_at(std::string_view host, std::string_view peer);
    std::vector<MemStation*> stations_of(std::string_view host);

    const MemNetworkOptions options_;
    Watcher* watcher_ = nullptr;
    // Protects the maps below, which are used to find things by name; packets in flight need no
    // lock.
    std::mutex mutex_;
    std::map<std::pair<std::string, std::string>, std::unique_ptr<MemLink>> links_;
    // All stations ever made: packets in flight may refer to one whose owner is gone.
    std::vector<std::unique_ptr<MemStation>> stations_;
    std::map<HostPort, MemStation*> listening_;
};

}  // namespace fopd::fabric

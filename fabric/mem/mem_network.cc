#include "fabric/mem/mem_network.h"

#include <algorithm>

#include "fabric/mem/mem_station.h"

namespace fopd::fabric {

namespace {

constexpr std::uint16_t kFirstFreePort = 49152;

}  // namespace

MemNetwork::MemNetwork(const MemNetworkOptions& options) : options_(options) {}

MemNetwork::~MemNetwork() = default;

// -- properties --

void MemNetwork::set_delay(const MemRoute& route, const DelayRange& delay) {
    ENSURE(delay.min <= delay.max);
    MemLink& changed = link(route);
    changed.delay_min_ns.store(delay.min.count());
    changed.delay_max_ns.store(delay.max.count());
}

void MemNetwork::set_bandwidth(const MemRoute& route, std::uint64_t bytes_per_second) {
    link(route).bytes_per_second.store(bytes_per_second);
}

void MemNetwork::stall(const MemRoute& route, Instant until) {
    link(route).stalled_until_ns.store(until.time_since_epoch().count());
    nudge_ends(route);
}

void MemNetwork::block(const MemRoute& route) {
    link(route).blocked.store(true);
    if (watcher_ != nullptr) watcher_->on_links_changed();
}

void MemNetwork::unblock(const MemRoute& route) {
    link(route).blocked.store(false);
    nudge_ends(route);
}

void MemNetwork::partition(const MemRoute& route) {
    block(route);
    block({.from = route.to, .to = route.from});
}

void MemNetwork::heal(const MemRoute& route) {
    unblock(route);
    unblock({.from = route.to, .to = route.from});
}

void MemNetwork::refuse_connects(const MemRoute& route) {
    link(route).refuses_connects.store(true);
}

void MemNetwork::allow_connects(const MemRoute& route) {
    link(route).refuses_connects.store(false);
}

void MemNetwork::lose_connections(const MemRoute& route, LossNotice notice) {
    drop_at(route.from, route.to);
    if (notice == LossNotice::kBoth) drop_at(route.to, route.from);
}

void MemNetwork::drop_at(std::string_view host, std::string_view peer) {
    if (watcher_ != nullptr) watcher_->on_lost(host, peer);
    const auto name = std::as_bytes(std::span(peer));
    for (MemStation* station : stations_of(host)) {
        auto packet = std::make_unique<MemPacket>();
        packet->kind = MemPacket::Kind::kDrop;
        packet->bytes.assign(name.begin(), name.end());
        station->push(std::move(packet));
    }
}

// Packets in flight wait at their destination, returned ones at their source.
void MemNetwork::nudge_ends(const MemRoute& route) {
    if (watcher_ != nullptr) watcher_->on_links_changed();
    for (const std::string_view host : {route.from, route.to}) {
        for (MemStation* station : stations_of(host)) {
            auto packet = std::make_unique<MemPacket>();
            packet->kind = MemPacket::Kind::kNudge;
            station->push(std::move(packet));
        }
    }
}

// -- the registry --

std::vector<MemStation*> MemNetwork::stations_of(std::string_view host) {
    const std::lock_guard lock(mutex_);
    std::vector<MemStation*> found;
    for (const auto& station : stations_) {
        if (station->host() == host) found.push_back(station.get());
    }
    return found;
}

MemStation& MemNetwork::make_station(core::Reactor& reactor, const std::string& host) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t seed = core::mix(options_.seed, stations_.size());
    stations_.push_back(std::make_unique<MemStation>(reactor, host, seed));
    return *stations_.back();
}

MemLink& MemNetwork::link(const MemRoute& route) {
    const std::lock_guard lock(mutex_);
    auto& made = links_[{std::string(route.from), std::string(route.to)}];
    if (made == nullptr) {
        made = std::make_unique<MemLink>(static_cast<std::uint32_t>(links_.size()));
        made->delay_min_ns.store(options_.delay.min.count());
        made->delay_max_ns.store(options_.delay.max.count());
    }
    return *made;
}

std::uint16_t MemNetwork::occupy(const std::string& host, std::uint16_t port, MemStation& station) {
    const std::lock_guard lock(mutex_);
    if (port == 0) {
        port = kFirstFreePort;
        while (port != 0 && listening_.contains({host, port})) ++port;
        if (port == 0) return 0;
    }
    const bool free = listening_.try_emplace({host, port}, &station).second;
    return free ? port : 0;
}

void MemNetwork::vacate(const std::string& host, std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    listening_.erase({host, port});
}

// Delivered under the lock, so that an acceptor that stops gets every request that found it.
std::unique_ptr<MemPacket> MemNetwork::deliver_request(const HostPort& at,
                                                       std::unique_ptr<MemPacket> packet) {
    const std::lock_guard lock(mutex_);
    const auto found = listening_.find(at);
    if (found == listening_.end()) return packet;
    packet->to = {.station = found->second, .connection = 0};
    found->second->push(std::move(packet));
    return nullptr;
}

}  // namespace fopd::fabric

#include "fabric/mem/mem_arrivals.h"

#include <algorithm>
#include <utility>

namespace fopd::fabric {

namespace {

// The least that a packet counts against a link's bandwidth.
constexpr std::uint64_t kHeaderBytes = 64;

}  // namespace

MemArrivals::Lane& MemArrivals::lane_of(MemLink& link) {
    Lane& lane = lanes_[link.id];
    lane.link = &link;
    return lane;
}

void MemArrivals::push(Arrival arrival) {
    heap_.push_back(std::move(arrival));
    std::ranges::push_heap(heap_, later);
}

MemArrivals::Arrival MemArrivals::pop() {
    std::ranges::pop_heap(heap_, later);
    Arrival first = std::move(heap_.back());
    heap_.pop_back();
    return first;
}

void MemArrivals::add(std::unique_ptr<MemPacket> packet, Instant now, Instant& order) {
    Instant due = now;
    if (packet->way != nullptr) {
        const MemLink& link = *packet->way;
        if (const std::uint64_t rate = link.bytes_per_second.load(); rate > 0) {
            Lane& lane = lane_of(*packet->way);
            const std::uint64_t bytes = packet->bytes.size() + kHeaderBytes;
            const auto span = Duration{static_cast<std::int64_t>(bytes * 1'000'000'000 / rate)};
            lane.free_at = std::max(now, lane.free_at) + span;
            due = lane.free_at;
        }
        const std::int64_t shortest = link.delay_min_ns.load();
        const std::int64_t longest = std::max(shortest, link.delay_max_ns.load());
        due += Duration{shortest == longest ? shortest : random_.between(shortest, longest)};
    }
    order = std::max(due, order);
    push({.due = order, .order = added_count_++, .packet = std::move(packet)});
}

// They keep their places in the order, so later packets of their connection stay behind them.
void MemArrivals::release(Instant now) {
    for (auto& [id, lane] : lanes_) {
        if (lane.held.empty() || !lane.link->passable(now)) continue;
        held_count_ -= lane.held.size();
        for (Arrival& each : lane.held) push(std::move(each));
        lane.held.clear();
    }
}

std::unique_ptr<MemPacket> MemArrivals::next(Instant now) {
    if (held_count_ > 0) release(now);
    while (!heap_.empty() && heap_.front().due <= now) {
        Arrival first = pop();
        MemLink* const link = first.packet->way;
        if (link == nullptr) return std::move(first.packet);
        // The link may change between two checks; packets that are held go first all the same.
        const bool passes = link->passable(now);
        if (passes && (held_count_ == 0 || lane_of(*link).held.empty())) {
            return std::move(first.packet);
        }
        lane_of(*link).held.push_back(std::move(first));
        ++held_count_;
    }
    return nullptr;
}

Instant MemArrivals::next_due() const {
    Instant due = heap_.empty() ? kNever : heap_.front().due;
    if (held_count_ == 0) return due;
    for (const auto& [id, lane] : lanes_) {
        if (lane.held.empty() || lane.link->blocked.load()) continue;
        due = std::min(due, Instant{Duration{lane.link->stalled_until_ns.load()}});
    }
    return due;
}

MemPackets MemArrivals::take_all() {
    for (auto& [id, lane] : lanes_) {
        for (Arrival& each : lane.held) push(std::move(each));
        lane.held.clear();
    }
    held_count_ = 0;
    MemPackets all;
    while (!heap_.empty()) all.push_back(pop().packet);
    return all;
}

}  // namespace fopd::fabric

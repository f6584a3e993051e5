#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "core/random.h"
#include "fabric/mem/mem_station.h"

namespace fopd::fabric {

// The packets in flight to a machine or an acceptor. A packet arrives when its delay has passed and
// its link is not blocked or stalled. Has no clock and no timer: the owner passes the time, and
// calls again at next_due().
class MemArrivals {
public:
    explicit MemArrivals(core::Random random) : random_(random) {}

    // Draws the delay of `packet`. It arrives no earlier than `order`, which is then set to its
    // arrival; one `order` for each connection keeps that connection's packets in order.
    void add(std::unique_ptr<MemPacket> packet, Instant now, Instant& order);
    // The next packet that has arrived, or null.
    std::unique_ptr<MemPacket> next(Instant now);
    // When to call again. A link that is unblocked causes a kNudge instead.
    Instant next_due() const;
    // Removes and returns all packets that have not arrived.
    MemPackets take_all();

private:
    struct Arrival {
        Instant due;
        std::uint64_t order;
        std::unique_ptr<MemPacket> packet;
    };
    // The arrivals from one link.
    struct Lane {
        MemLink* link = nullptr;
        Instant free_at = Instant::min();  // When the last byte in flight has passed.
        std::deque<Arrival> held;          // Due, but the link is stalled or blocked.
    };
    static bool later(const Arrival& a, const Arrival& b) {
        return a.due != b.due ? a.due > b.due : a.order > b.order;
    }
    Lane& lane_of(MemLink& link);
    void push(Arrival arrival);
    Arrival pop();
    void release(Instant now);

    core::Random random_;
    std::vector<Arrival> heap_;            // Earliest first; equal ones in the order of add().
    std::map<std::uint32_t, Lane> lanes_;  // By the link's id.
    std::uint64_t added_count_ = 0;
    std::size_t held_count_ = 0;
};

}  // namespace fopd::fabric

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "core/random.h"
#include "fabric/mem_station.h"

namespace fopd::fabric {

// What is on its way to a machine or an acceptor, until its link lets it pass. No clock, no timer:
// its owner says what time it is and comes again when something is due.
class MemArrivals {
public:
    explicit MemArrivals(core::Random random) : random_(random) {}

    // Draws how long `packet` is on its way. It arrives not before `order`, which then is moved to
    // its own arrival: one for each connection keeps that connection's packets in order.
    void add(std::unique_ptr<MemPacket> packet, Instant now, Instant& order);
    // The next that has arrived, or null.
    std::unique_ptr<MemPacket> next(Instant now);
    // When to come again; a link that is unblocked says so by a nudge.
    Instant next_due() const;
    // Everything that has not arrived.
    MemPackets take_all();

private:
    struct Arrival {
        Instant due;
        std::uint64_t order;
        std::unique_ptr<MemPacket> packet;
    };
    // What this owner gets over one link.
    struct Lane {
        MemLink* link = nullptr;
        Instant free_at = Instant::min();  // When the last byte of what is under way has passed.
        std::deque<Arrival> held;          // Due, but the link does not let it pass.
    };
    static bool later(const Arrival& a, const Arrival& b) {
        return a.due != b.due ? a.due > b.due : a.order > b.order;
    }
    Lane& lane_of(MemLink& link);
    void push(Arrival arrival);
    Arrival pop();
    void release(Instant now);

    core::Random random_;
    std::vector<Arrival> heap_;  // Earliest first, equal ones in the order they were added.
    std::map<std::uint32_t, Lane> lanes_;  // By the link's id.
    std::uint64_t added_count_ = 0;
    std::size_t held_count_ = 0;
};

}  // namespace fopd::fabric

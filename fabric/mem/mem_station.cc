#include "fabric/mem/mem_station.h"

#include <algorithm>
#include <utility>

namespace fopd::fabric {

MemStation::MemStation(core::Reactor& reactor, std::string host, std::uint64_t seed)
    : reactor_(reactor), host_(std::move(host)), seed_(seed) {}

MemStation::~MemStation() {
    take();
}

// All accesses are sequentially consistent, so that of push() and close() at least one sees the
// other, and so do the ringing and the answering of the bell.
void MemStation::push(std::unique_ptr<MemPacket> packet) {
    if (!open_.load()) {
        return_to_sender(std::move(packet));
        return;
    }
    MemPacket* const pushed = packet.release();
    pushed->next = newest_.load(std::memory_order_relaxed);
    while (!newest_.compare_exchange_weak(pushed->next, pushed)) {
    }
    if (!open_.load()) {
        for (auto& each : take()) return_to_sender(std::move(each));
        return;
    }
    if (!rung_.exchange(true)) reactor_.post(bell_);
}

MemPackets MemStation::take() {
    MemPackets taken;
    for (MemPacket* each = newest_.exchange(nullptr); each != nullptr;) {
        MemPacket* const next = std::exchange(each->next, nullptr);
        taken.emplace_back(each);
        each = next;
    }
    std::ranges::reverse(taken);
    return taken;
}

void MemStation::close() {
    open_.store(false);
    for (auto& each : take()) return_to_sender(std::move(each));
}

void MemStation::return_to_sender(std::unique_ptr<MemPacket> packet) {
    if (packet->stray || !packet->wants_answer()) return;
    packet->stray = true;
    packet->from.station->push(std::move(packet));
}

}  // namespace fopd::fabric

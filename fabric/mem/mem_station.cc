#include "fabric/mem/mem_station.h"

#include <algorithm>
#include <utility>

namespace fopd::fabric {

MemStation::MemStation(core::Reactor& reactor, std::string host, std::uint64_t seed)
    : reactor_(reactor), host_(std::move(host)), seed_(seed) {}

MemStation::~MemStation() {
    take();
}

// All accesses are sequentially consistent, so that push() sees close(), or close() sees push();
// the same holds for ringing the bell and answering it.
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

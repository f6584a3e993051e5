#pragma once

#include <string>

#include "core/poller.h"
#include "fabric/mem/mem_arrivals.h"
#include "fabric/mem/mem_network.h"
#include "fabric/transport.h"

namespace fopd::fabric {

// A request to connect that was not answered yet.
class MemRequest final : public ConnectionRequest {
public:
    explicit MemRequest(std::unique_ptr<MemPacket> packet) : packet_(std::move(packet)) {}
    ~MemRequest() override;

    std::span<const std::byte> hello() const override { return packet_->bytes; }
    std::string peer() const override { return peer_of(*packet_); }
    void refuse(std::string_view words) override;

    // Gives the request to the machine that accepts it. REQUIRES: not refused.
    std::unique_ptr<MemPacket> take();

    static std::string peer_of(const MemPacket& request);

private:
    std::unique_ptr<MemPacket> packet_;
    bool answered_ = false;
};

class MemAcceptor final : public Acceptor, core::Poller {
public:
    // The station is already registered at the address.
    MemAcceptor(MemNetwork& network, core::Reactor& reactor, MemStation& station, Address address,
                RequestUser& requests);
    ~MemAcceptor() override;

    const Address& address() const override { return address_; }
    Task<void> stop() override;

private:
    class WakeUp final : public core::Timer {
    public:
        WakeUp() : Timer([](core::Timer&) {}) {}
    };

    void close();
    bool poll() override;
    void end_of_turn() override {}
    Duration sleep_max() override { return Duration::max(); }
    void hand_out(std::unique_ptr<MemPacket> packet);

    MemNetwork& network_;
    core::Reactor& reactor_;
    MemStation& station_;
    const Address address_;
    RequestUser& requests_;
    MemArrivals arrivals_;
    WakeUp wake_up_;
    bool closed_ = false;
};

}  // namespace fopd::fabric

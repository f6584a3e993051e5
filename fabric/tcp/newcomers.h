#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/cancel.h"
#include "core/intrusive_list.h"
#include "core/ip_network.h"
#include "fabric/host_shares.h"
#include "fabric/tcp/frame.h"
#include "fabric/tcp/sockets.h"

namespace fopd::fabric {

// A connection whose first frame has not arrived.
struct Newcomer final : core::ListNode {
    Newcomer(OwnedSocket owned, const SocketAddress& name);

    OwnedSocket socket;
    const SocketAddress peer;
    const core::IpAddress host;  // The host by which the connection is counted.
    std::array<std::byte, kFrameHeaderBytes + kHelloBytesMax> bytes{};
    std::size_t count = 0;    // How many bytes have arrived.
    std::uint64_t order = 0;  // Increases with each newcomer.
    core::CancelSource leave;
};

// Bounds the newcomers of an acceptor, in total and per host.
class Newcomers {
public:
    explicit Newcomers(std::size_t count_max) : shares_(count_max) {}

    // Adds a newcomer. If its host has used its share, removes the host's oldest newcomer and
    // cancels its `leave`. If no place is left for a new host, removes the oldest newcomer of the
    // hosts that have the most.
    void add(Newcomer& newcomer);
    // Idempotent.
    void remove(Newcomer& newcomer);
    void cancel_all();

    std::size_t count() const { return shares_.taken(); }

private:
    struct OfHost {
        core::IntrusiveList<Newcomer> newcomers;  // The oldest first.
    };
    using Shares = HostShares<core::IpAddress, OfHost>;
    void end_oldest(Shares::Host& host);
    Shares::Host& host_with_most();

    Shares shares_;
    std::uint64_t next_order_ = 0;
};

}  // namespace fopd::fabric

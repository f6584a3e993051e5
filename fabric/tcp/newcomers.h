#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "core/cancel.h"
#include "core/intrusive_list.h"
#include "core/ip_network.h"
#include "core/owned_fd.h"
#include "fabric/socket_address.h"
#include "fabric/tcp/frame.h"

namespace fopd::fabric {

// A connection whose first frame has not arrived.
struct Newcomer final : core::ListNode {
    Newcomer(core::OwnedFd socket, const SocketAddress& name);

    core::OwnedFd fd;
    const SocketAddress peer;
    const core::IpAddress host;  // Under which it is counted.
    std::array<std::byte, kFrameHeaderBytes + kHelloBytesMax> bytes{};
    std::size_t count = 0;    // Of bytes that have arrived.
    std::uint64_t order = 0;  // A newcomer that came later has a higher one.
    core::CancelSource leave;
};

// Bounds the newcomers of an acceptor, in total and per host. A host may have as many as are left
// for others: the first one half of all, the next one half of the rest.
class Newcomers {
public:
    explicit Newcomers(std::size_t count_max) : count_max_(count_max) {}

    // Adds a newcomer. If its host has its share, the host's oldest newcomer is removed and its
    // `leave` cancelled; if none is left for a new host, the oldest of the hosts with the most.
    void add(Newcomer& newcomer);
    // Idempotent.
    void remove(Newcomer& newcomer);
    void cancel_all();

    std::size_t count() const { return count_; }

private:
    struct Host {
        core::IntrusiveList<Newcomer> newcomers;  // The oldest first.
        std::size_t count = 0;
    };
    void end_oldest(Host& host);

    const std::size_t count_max_;
    std::map<core::IpAddress, Host> hosts_;
    std::size_t count_ = 0;
    std::uint64_t next_order_ = 0;
};

}  // namespace fopd::fabric

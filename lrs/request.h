#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/intrusive_list.h"
#include "core/time.h"
#include "fop/fop_type.h"

namespace fopd::lrs {

// Control requests go before data: they are few and small, and what a client still needs while its
// data waits.
using fop::Lane;
inline constexpr std::size_t kLaneCount = 2;
inline constexpr std::array<std::string_view, kLaneCount> kLaneNames{"control", "data"};

// What a client calls itself; the same on all its sessions.
using ClientId = std::array<std::byte, 16>;

// What a policy may decide by. The text is borrowed from whoever made the request, until the
// request is completed.
struct RequestAttributes {
    std::uint16_t type = 0;  // Its number in the table of fop types.
    Lane lane = Lane::kData;
    std::uint8_t priority = 0;
    ClientId client{};
    std::string_view principal{};
    std::string_view user{};  // On whose behalf, when the principal may say so.
    std::string_view job{};
    std::string_view pool{};
    std::string_view peer{};       // The client's address.
    std::uint64_t size_bytes = 0;  // Of data it moves.
    Instant deadline = kNever;
};

class Scheduler;

// Its place among those a policy holds.
class PolicyPlace : public core::ListNode {};
// Its place among those of its lane, by arrival; the scheduler's.
class ArrivalPlace : public core::ListNode {};

// Something that waits for its turn. Made and owned by whoever brings it, who keeps it from
// Scheduler::incoming() until Scheduler::complete() or remove(); it holds none of the network's
// buffers. May be used again afterwards.
class Request : public PolicyPlace, public ArrivalPlace {
public:
    RequestAttributes attributes;

    Instant arrived_at() const { return arrived_at_; }
    // Whether it waits in a scheduler.
    bool queued() const { return state_ == State::kQueued; }

private:
    friend Scheduler;
    enum class State : std::uint8_t { kOutside, kQueued, kDelivered };

    State state_ = State::kOutside;
    Instant arrived_at_{};
};

}  // namespace fopd::lrs

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "core/intrusive_list.h"
#include "core/time.h"
#include "core/timer_heap.h"
#include "fop/fid.h"
#include "fop/fop_type.h"

namespace fopd::lrs {

// Control requests go before data: they are few and small, and what a client still needs while its
// data waits.
using fop::Lane;
inline constexpr std::size_t kLaneCount = 2;
inline constexpr std::array<std::string_view, kLaneCount> kLaneNames{"control", "data"};

// What a client calls itself; the same on all its sessions.
using ClientId = std::array<std::byte, 16>;

// Which way the data of an object goes.
enum class Direction : std::uint8_t { kNone, kRead, kWrite };

// Behind the end of the object, wherever that is.
inline constexpr std::uint64_t kAtEnd = std::numeric_limits<std::uint64_t>::max();

inline constexpr std::uint32_t kNoDevice = std::numeric_limits<std::uint32_t>::max();

// What a policy may decide by. The text is borrowed from whoever made the request, until the
// request is completed.
struct RequestAttributes {
    std::uint16_t type = 0;  // Its number in the table of fop types.
    Lane lane = Lane::kData;
    std::uint8_t priority = 0;
    Direction direction = Direction::kNone;
    std::uint32_t device = kNoDevice;  // The slot it goes to.
    ClientId client{};
    fop::Fid object{};         // Zero: it is about none, or one that is yet to be found.
    std::uint64_t offset = 0;  // In the object: of the first byte that moves.
    std::string_view principal{};
    std::string_view user{};  // On whose behalf: the principal, or whom it may act for.
    std::span<const std::string> groups{};  // The principal's.
    std::string_view job{};
    std::string_view pool{};
    std::string_view peer{};       // The client's address.
    std::uint64_t size_bytes = 0;  // Of data it moves.
    Instant deadline = kNever;
    Instant arrived_at{};  // The scheduler fills it in.
};

class Scheduler;

// Its place among those a policy holds, and what the policy notes there, if anything.
class PolicyPlace : public core::ListNode {
public:
    void* queue = nullptr;
    std::uint64_t number = 0;
};
// Its place in a policy that is built on top of another.
class OuterPlace : public core::ListNode {
public:
    bool is_of_inner = false;  // The inner one gave it out.
};
// Its place among those of its lane, by arrival; the scheduler's.
class ArrivalPlace : public core::ListNode {};

// Something that waits for its turn. Made and owned by whoever brings it, who keeps it from
// Scheduler::incoming() until Scheduler::complete() or remove(); it holds none of the network's
// buffers. May be used again afterwards.
class Request : public PolicyPlace, public OuterPlace, public ArrivalPlace {
public:
    // Called when the deadline passes while the request is queued; the scheduler has removed it
    // then. Says why it was still queued: the limit of its class, or other requests before it.
    enum class Waited : std::uint8_t { kForLimit, kForOthers };
    using Late = void (*)(Request& request, Waited waited);

    // Null: it waits on.
    explicit Request(Late late = nullptr) : late_(late) {}

    RequestAttributes attributes;

    Instant arrived_at() const { return attributes.arrived_at; }
    // Whether it waits in a scheduler.
    bool queued() const { return state_ == State::kQueued; }
    // Whether it was given to a getter and has not ended.
    bool delivered() const { return state_ == State::kDelivered; }

private:
    friend Scheduler;
    enum class State : std::uint8_t { kOutside, kQueued, kDelivered };
    // Its place among those that have a deadline.
    struct DeadlinePlace final : core::Timer {
        explicit DeadlinePlace(Request& owner) : Timer(&on_time), request(owner) {}
        static void on_time(core::Timer& timer);
        Request& request;
        Scheduler* scheduler = nullptr;  // That it waits in.
    };

    const Late late_;
    DeadlinePlace deadline_place_{*this};
    State state_ = State::kOutside;
    // Of those it waits with; then of the policy that gave it out, 0: none did.
    std::uint32_t number_ = 0;
};

}  // namespace fopd::lrs

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

// Control requests are served before data requests: control requests are few and small, and a
// client needs them even while its data requests wait.
using fop::Lane;
inline constexpr std::size_t kLaneCount = 2;
inline constexpr std::array<std::string_view, kLaneCount> kLaneNames{"control", "data"};

// The id a client has chosen for itself. A client uses one id on all its sessions.
using ClientId = std::array<std::byte, 16>;

// Whether a request reads or writes the data of an object, or neither.
enum class Direction : std::uint8_t { kNone, kRead, kWrite };

// An offset that means the end of the object: the request appends.
inline constexpr std::uint64_t kAtEnd = std::numeric_limits<std::uint64_t>::max();

inline constexpr std::uint32_t kNoDevice = std::numeric_limits<std::uint32_t>::max();

// The properties of a request that a policy may use. The owner of the request keeps the texts that
// the members refer to until the request is completed.
struct RequestAttributes {
    std::uint16_t type = 0;  // The number of the fop type.
    Lane lane = Lane::kData;
    std::uint8_t priority = 0;
    Direction direction = Direction::kNone;
    std::uint32_t device = kNoDevice;  // The slot of the disk.
    ClientId client{};
    fop::Fid object{};         // Zero: no object, or not known yet.
    std::uint64_t offset = 0;  // The offset in the object of the first byte to move.
    std::string_view principal{};
    // fop::share_name(). All peers have the same share, and so have all clients without a key,
    // because nothing proves their names.
    std::string_view share{};
    std::string_view user{};  // The principal, or the user for whom the principal acts.
    std::span<const std::string> groups{};  // The groups of the principal.
    std::string_view job{};
    std::string_view pool{};
    std::string_view peer{};       // The client's address.
    std::uint64_t size_bytes = 0;  // The bytes of data to move.
    Instant deadline = kNever;
    Instant arrived_at{};  // Set by the scheduler.
};

// The class of a request in its policy, and the rule that made the class. Empty: it has none.
struct ClassLabel {
    std::string_view name{};
    std::string_view rule{};
};

class Scheduler;

// Links a request into a list of its policy. The members are for the policy's own use.
class PolicyPlace : public core::ListNode {
public:
    void* queue = nullptr;
    std::uint64_t number = 0;
};
// Links a request into a list of an outer policy, one that is built on top of another policy.
class OuterPlace : public core::ListNode {
public:
    bool is_of_inner = false;  // The inner policy has popped the request.
};
// Links a request into the scheduler's list of its lane, in the order of arrival.
class ArrivalPlace : public core::ListNode {};

// A request that waits to be scheduled. The caller of Scheduler::incoming() owns it, and keeps it
// until Scheduler::complete() or remove(); afterwards the request may be used again. A request
// holds no network buffer.
class Request : public PolicyPlace, public OuterPlace, public ArrivalPlace {
public:
    // Why a request was still queued when its deadline passed: for the limit of its class, or for
    // other requests.
    enum class Waited : std::uint8_t { kForLimit, kForOthers };
    // Called when the deadline passes while the request is queued. The scheduler has already
    // removed the request; `label` is the class in which it waited, valid during the call.
    using Late = void (*)(Request& request, Waited waited, const ClassLabel& label);

    // If `late` is null, the request stays queued after its deadline.
    explicit Request(Late late = nullptr) : late_(late) {}

    RequestAttributes attributes;

    Instant arrived_at() const { return attributes.arrived_at; }
    // Whether the request waits in a scheduler.
    bool queued() const { return state_ == State::kQueued; }
    // Whether a getter has received the request and the request has not ended.
    bool delivered() const { return state_ == State::kDelivered; }

private:
    friend Scheduler;
    enum class State : std::uint8_t { kOutside, kQueued, kDelivered };
    // The timer for the deadline of the request.
    struct DeadlinePlace final : core::Timer {
        explicit DeadlinePlace(Request& owner) : Timer(&on_time), request(owner) {}
        static void on_time(core::Timer& timer);
        Request& request;
        Scheduler* scheduler = nullptr;  // Where the request is queued.
    };

    const Late late_;
    DeadlinePlace deadline_place_{*this};
    State state_ = State::kOutside;
    // While queued: the number of its Scheduler::Waiting. Once delivered: the number of the policy
    // that popped the request; 0 if no policy did.
    std::uint32_t number_ = 0;
};

}  // namespace fopd::lrs

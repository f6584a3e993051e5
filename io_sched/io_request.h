#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "core/cancel.h"
#include "core/intrusive_list.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/time.h"
#include "core/timer_heap.h"

namespace fopd::io_sched {

// The type of a request. A format discards a range: its content is undefined until it is written
// again.
enum class IoType : std::uint8_t { kRead, kWrite, kFormat };
inline constexpr std::size_t kIoTypeCount = 3;
inline constexpr std::array<std::string_view, kIoTypeCount> kIoTypeNames{"read", "write", "format"};

// Foreground requests, which a client waits for, go before background work such as scrub and
// cleaning.
enum class IoPriority : std::uint8_t { kForeground, kBackground };

// A family of devices has a set of I/O schedulers of its own. A disk is one medium for life; a tape
// drive has one cartridge after the other.
enum class IoFamily : std::uint8_t { kDisk, kTape };
inline constexpr std::size_t kIoFamilyCount = 2;

// A storage medium: a disk, or a cartridge wherever it is now. The code that adds devices and media
// assigns the numbers.
enum class MediumId : std::uint32_t {};

// A write with this medium goes to a cartridge that the scheduler chooses; it is then in its place.
inline constexpr MediumId kAnyMedium{std::numeric_limits<std::uint32_t>::max()};

// One medium of a request, and the location of the bytes on it.
struct IoPart {
    // The part's progress, written by the scheduler. Parts that a read did not need stay kWaiting.
    enum class State : std::uint8_t { kWaiting, kTaken, kDone, kFailed };

    MediumId medium{};
    State state = State::kWaiting;
    // Set by the scheduler: the IoDevice::number() of the drive on which it failed, and to which it
    // does not go while there is another; 0: none.
    std::uint8_t failed_on = 0;
    // On a disk, bytes. On a cartridge, the bytes that precede it: an order, not an address. The
    // executor knows the block.
    std::uint64_t offset = 0;
    std::uint64_t size_bytes = 0;
};

class LimitedRequest;
class MainScheduler;

// List node of a request in its scheduler's queue.
class OrderPlace : public core::ListNode {};
// List node of a request in the main scheduler's list of waiting requests.
class WaitingPlace : public core::ListNode {};

// A read, write or format request: how much, and where. Its memory is known to the executors of its
// media only, which take a subclass (DiskRequest). The caller owns it and must keep it, its parts
// and its memory until it is completed, which happens exactly once and never within push(). It may
// be reused afterwards. Destroying a waiting request withdraws it; a running request may be
// destroyed only when the whole simulation is.
//
// Concurrent requests for the same blocks are not ordered.
//
// Very many may wait for cartridges: its members are ordered so that they leave no gaps.
class IoRequest : public OrderPlace, public WaitingPlace {
public:
    // May push this request again, or others.
    using Complete = void (*)(IoRequest&);

    explicit IoRequest(Complete complete) : complete_(complete) {}
    ~IoRequest() {
        if (waiting()) withdraw();
    }

    // -- set by the owner --

    IoType type = IoType::kRead;
    IoPriority priority = IoPriority::kForeground;
    IoFamily family = IoFamily::kDisk;
    // For drives: of the requests with the same priority, those with a higher urgency go first.
    std::uint8_t urgency = 0;
    // Of a write with kAnyMedium: it goes to a medium of this pool.
    std::uint32_t pool = 0;
    // Writes of a collection stay together on a cartridge; 0: it belongs to none.
    std::uint64_t collection = 0;
    // A read completes once any `required_count` of its parts have succeeded, and tries another
    // part when one fails. A write needs all of its parts. A format has exactly one part.
    std::span<IoPart> parts{};
    std::uint16_t required_count = 1;

private:
    friend MainScheduler;
    friend LimitedRequest;

    bool is_limited_ : 1 = false;  // It is a LimitedRequest.
    bool given_up_ : 1 = false;    // Running parts end, and no other part is tried.
    bool keeps_age_ : 1 = false;   // The next push() leaves its age as it is.
    std::uint16_t missing_count_ = 0;
    std::uint16_t running_count_ = 0;

public:
    // -- set by the scheduler --

    // Valid once completed. kNotFound: no device has the medium. kClosed: the scheduler stopped.
    // Otherwise the first error of a part that could not be replaced by another.
    Result<void> result{};

    // Whether a scheduler holds it, because a part of it has no device yet.
    bool waiting() const { return owner_ != nullptr && missing_count_ > 0; }
    // From when it was pushed until every part had a device. Valid once completed.
    Duration waited() const { return waited_; }
    // The time it was pushed, and its sequence number: lower means older.
    Instant arrived_at() const { return arrived_at_; }
    std::uint64_t arrival() const { return arrival_; }
    // Of a request that is withdrawn to be pushed again, with another urgency, or as another
    // object: the next push() keeps this age. REQUIRES: no other request that waits has it.
    struct Age {
        Instant arrived_at{};
        std::uint64_t arrival = 0;
    };
    Age age() const { return {.arrived_at = arrived_at_, .arrival = arrival_}; }
    void keep_age(const Age& age) {
        arrived_at_ = age.arrived_at;
        arrival_ = age.arrival;
        keeps_age_ = true;
    }
    // How many parts still have to be given to a device.
    std::uint32_t missing_count() const { return missing_count_; }

    // Whether a read has untried parts beyond those that it still needs.
    bool has_spare() const {
        const auto waiting = std::ranges::count(parts, IoPart::State::kWaiting, &IoPart::state);
        return static_cast<std::uint64_t>(waiting) > missing_count_;
    }

    // -- for schedulers --

    // Resets a request that is pushed.
    void stamp(std::uint64_t arrival, Instant now);
    // Marks a part as given to a device.
    void take(std::size_t part) {
        parts[part].state = IoPart::State::kTaken;
        --missing_count_;
    }

    // For the data structures of the scheduler that holds the request. Counts about the parts are
    // kept here, because the owner may have destroyed the parts of a request that leaves.
    struct QueueState {
        static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
        std::uint32_t heap = kNone;  // Index in a heap.
        std::uint16_t heap_number = 0;
        std::uint16_t part = 0;  // Index of the part it waits with.
        void* queue = nullptr;
        std::uint64_t bytes = 0;  // Of that part.
        std::uint64_t cost = 0;   // Of the request; see cost_of().
    };
    QueueState queue_state;

private:
    void withdraw();

    Complete complete_;
    MainScheduler* owner_ = nullptr;  // From push() to completion.
    Instant arrived_at_{};
    Duration waited_{};
    std::uint64_t arrival_ = 0;
};

// A request that may be given up.
class LimitedRequest : core::Timer, core::CancelHook, public IoRequest {
public:
    explicit LimitedRequest(Complete complete)
        : Timer(&on_time), CancelHook(&on_cancel), IoRequest(complete) {
        is_limited_ = true;
    }

    // Limits the wait for a device, and for a read also the I/O itself (kTimedOut, kCancelled). A
    // write that a device has begun always runs to its end.
    core::WaitOptions wait{};

private:
    friend MainScheduler;

    static void on_time(core::Timer& timer);
    static void on_cancel(core::CancelHook& hook);
};

}  // namespace fopd::io_sched

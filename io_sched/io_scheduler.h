#pragma once

#include <cstddef>
#include <optional>

#include "core/result.h"
#include "core/time.h"
#include "io_sched/io_device.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched {

// The device that one part of a request is given to.
struct DeviceMedium {
    IoDevice* device = nullptr;
    std::size_t part = 0;  // Index in the request's parts; determines the medium.
    // Of drives: the one that has the medium now, and gives it back first. It is idle, but may be
    // down. Null: the medium is in no other drive.
    IoDevice* from = nullptr;
};

// The device that a scheduler is asked to give up.
struct Reclaim {
    enum class Kind : std::uint8_t {
        kTake,      // Any device of `technology`.
        kExchange,  // `wanted`, for which the scheduler gets `offered`.
    };

    Kind kind = Kind::kTake;
    Technology technology = kDiskTechnology;
    IoDevice* wanted = nullptr;
    IoDevice* offered = nullptr;

    static Reclaim take(Technology technology) { return {.technology = technology}; }
    static Reclaim exchange(IoDevice& wanted, IoDevice& offered) {
        return {.kind = Kind::kExchange, .wanted = &wanted, .offered = &offered};
    }
};

// Orders the requests given to it, and chooses a device and a medium for each. Pure: it is given
// the time, does no I/O, and owns neither requests nor devices. It may share its devices with other
// schedulers, and may serve several types of requests.
//
// A request belongs to the scheduler from push_request() to remove_request(). The scheduler neither
// allocates nor copies: a request contains its own list node.
class IoScheduler {
public:
    virtual ~IoScheduler() = default;

    // -- requests --

    // Adds a request with missing parts: a new one, or one whose part failed on a device and that
    // has another part to try.
    virtual void push_request(IoRequest& request) = 0;
    // The next request that has a usable device, or that no device can ever serve; null if none.
    // Repeated calls return the same request until get_device_medium_pair(), requeue() or
    // remove_request(). Nothing that can be observed changes.
    virtual IoRequest* peek_request(Instant now) = 0;
    // For the request peeked last: a device with room, and the part that goes to it, which is
    // kTaken from then on. Called once for each missing part; a scheduler that wants all or none
    // gives none before it has all. Without a value: no device has room now. kNotFound: no device
    // this scheduler knows has any of the media that are left, or can have them. kNoSpace: no
    // medium has the space that a write needs.
    virtual Result<std::optional<DeviceMedium>> get_device_medium_pair(IoRequest& request,
                                                                       Instant now) = 0;
    // Puts the request peeked last back, because no device has room for its missing parts now. It
    // keeps its age; peek_request() returns it again when a device has room.
    virtual void requeue(IoRequest& request) = 0;
    // Takes out any request that is here: all its parts are given to devices, or it is given up.
    virtual void remove_request(IoRequest& request) = 0;
    // A part of the request, which may be here or not, failed on the device. Returns whether it may
    // be tried again: with another part, or with this one, which is then kWaiting again, on another
    // device. The request is pushed afterwards unless it is here.
    virtual bool retry(IoRequest& request, IoPart& part, const IoDevice& device) = 0;
    // When peek_request() may return something else, though nothing but the time changes; kNever:
    // it will not.
    virtual Instant next_time(Instant /*now*/) const { return kNever; }

    // -- devices --

    // Requests may be pushed before a device for them was added. Idempotent.
    virtual void add_device(IoDevice& device) = 0;
    // Removes a device; no effect if it was not added. Requests for it wait for another device or
    // become unschedulable.
    virtual void remove_device(IoDevice& device) = 0;
    // Takes a device away from the scheduler and returns it. kTake: of those of the technology, the
    // one that it needs least; null if it has none that it can do without. kExchange: adds
    // `offered` and returns `wanted`, if neither is in use and it can do without `wanted`.
    // Otherwise changes nothing and returns null.
    virtual IoDevice* reclaim_device(const Reclaim& what) = 0;
    // A device of another scheduler that has a medium for which a request here waits, and is not in
    // use; null if there is none.
    virtual IoDevice* wanted_device() const { return nullptr; }
    virtual bool has_device(const IoDevice& device) const = 0;
    virtual std::size_t device_count() const = 0;
};

}  // namespace fopd::io_sched

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
};

// Orders the requests given to it, and chooses a device and a medium for each. Pure: it is given
// the time, does no I/O, and owns neither requests nor devices. It may share its devices with other
// schedulers.
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
    // remove_request().
    virtual IoRequest* peek_request(Instant now) = 0;
    // For the request peeked last: a device with room, and the part that goes to it, which is
    // kTaken from then on. Called once for each missing part; a scheduler that wants all or none
    // gives none before it has all. Without a value: no device has room now. kNotFound: no device
    // this scheduler knows has any of the media that are left.
    virtual Result<std::optional<DeviceMedium>> get_device_medium_pair(IoRequest& request,
                                                                       Instant now) = 0;
    // Puts the request peeked last back, because no device has room for its missing parts now. It
    // keeps its age; peek_request() returns it again when a device has room.
    virtual void requeue(IoRequest& request) = 0;
    // Takes out any request that is here: all its parts are given to devices, or it is given up.
    virtual void remove_request(IoRequest& request) = 0;

    // -- devices --

    // Requests may be pushed before a device for them was added. Idempotent.
    virtual void add_device(IoDevice& device) = 0;
    // Removes a device; no effect if it was not added. Requests for it wait for another device or
    // become unschedulable.
    virtual void remove_device(IoDevice& device) = 0;
    // Removes and returns one device that the scheduler does not need; null if it needs all of
    // them.
    virtual IoDevice* reclaim_device() = 0;
    virtual std::size_t device_count() const = 0;
};

}  // namespace fopd::io_sched

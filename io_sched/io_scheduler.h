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
    // The next request that can be scheduled, or that cannot be at all; null when there is none
    // now. Once there is one it is the same again, whatever is pushed meanwhile, until one of the
    // three calls below.
    virtual IoRequest* peek_request(Instant now) = 0;
    // For the request peeked last: a device with room, and the part that goes to it, which is
    // kTaken from then on. Called once for each missing part; a scheduler that wants all or none
    // gives none before it has all. Without a value: no device has room now. kNotFound: no device
    // this scheduler knows has any of the media that are left.
    virtual Result<std::optional<DeviceMedium>> get_device_medium_pair(IoRequest& request,
                                                                       Instant now) = 0;
    // The request peeked last still has parts missing that cannot go now. It keeps its age, and is
    // peeked again when they can.
    virtual void requeue(IoRequest& request) = 0;
    // Takes out any request that is here: all its parts are given to devices, or it is given up.
    virtual void remove_request(IoRequest& request) = 0;

    // -- devices --

    // Requests may be pushed before a device for them was added. Idempotent.
    virtual void add_device(IoDevice& device) = 0;
    // No effect if it is not here. Requests that waited for it wait for other devices, or cannot be
    // scheduled.
    virtual void remove_device(IoDevice& device) = 0;
    // Removes and returns one device that the scheduler does not need; null if it needs all of
    // them.
    virtual IoDevice* reclaim_device() = 0;
    virtual std::size_t device_count() const = 0;
};

}  // namespace fopd::io_sched

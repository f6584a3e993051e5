#pragma once

#include <cstdint>
#include <span>

#include "core/io.h"
#include "devices/device.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched {

class MainScheduler;

// A request for disks. Its parts consist of whole blocks, as devices::Device requires.
class DiskRequest : public LimitedRequest {
public:
    using LimitedRequest::LimitedRequest;

    // The memory of each part, of the part's size; or one for all parts, where a read needs only
    // one of them, or a write has the same bytes for all. A format has no memory.
    std::span<const core::Buffer> buffers{};
};

// The bytes of a request that has one part.
struct DiskPart {
    MediumId medium{};
    core::Buffer buffer{};  // For a format, only its size.
    std::uint64_t offset = 0;
};

// `disk` serves requests for `medium` from now on, which must be DiskRequests. It must outlive its
// removal from the scheduler, or the scheduler's stop().
Result<void> add_disk(MainScheduler& scheduler, MediumId medium, devices::Device& disk);

}  // namespace fopd::io_sched

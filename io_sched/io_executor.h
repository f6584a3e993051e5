#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/result.h"
#include "core/task.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched {

// A part of a request that is given to a device.
struct IoShare {
    IoRequest* request = nullptr;
    IoPart* part = nullptr;
};

// Performs the operations that the main scheduler gives to one device. Each executor has a subclass
// of IoRequest, with the memory and commands of the operations; all requests for its media are of
// that class. The executor of a drive first exchanges the medium if the part needs another one.
class IoExecutor {
public:
    static constexpr std::size_t kJoinedMax = 32;

    virtual ~IoExecutor() = default;

    // Performs one part. A write that has begun runs to its end, whatever its `wait` says.
    virtual Task<Result<void>> execute(const IoRequest& request, const IoPart& part) = 0;
    // The state of a drive after an operation.
    struct Content {
        std::optional<MediumId> medium{};
        std::uint64_t position = 0;  // On the medium, in the terms of IoPart::offset.
        bool is_down = false;        // It should get no more operations.
        // Another drive would not do better.
        bool fails_everywhere = false;
    };
    virtual Content content() const { return {}; }
    // An operation on a drive ends with an error before execute(): its medium could not be taken
    // out of another drive.
    virtual void could_not_execute(const IoRequest& /*request*/) {}
    // Of a drive, which may be down: takes its medium out, so that another drive can get it. No
    // operation runs.
    virtual Task<Result<void>> take_out() { co_return Result<void>{}; }
    // Performs adjacent writes, in the order of their offsets, as one operation. REQUIRES: 2 to
    // kJoinedMax, on a disk.
    virtual Task<Result<void>> execute_joined(std::span<const IoShare> writes) = 0;
};

}  // namespace fopd::io_sched

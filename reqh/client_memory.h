#pragma once

#include <cstdint>

#include "core/io.h"
#include "core/result.h"
#include "core/task.h"
#include "fop/descriptor.h"

namespace fopd::reqh {

// The memory of the client of a fop, as the fop has opened it. Lives on the reactor of the session.
class ClientMemory {
public:
    enum class Direction : std::uint8_t { kPull, kPush };
    struct Move {
        const fop::SealedDescriptor* memory = nullptr;  // Part of the request.
        std::uint64_t offset = 0;
        core::Buffer piece{};
        Direction direction = Direction::kPull;
    };

    // Ends by the deadline of the fop, when it is given up, and when the client needs too long:
    // kTimedOut.
    virtual Task<Result<void>> move(Move what) = 0;

protected:
    ~ClientMemory() = default;
};

}  // namespace fopd::reqh

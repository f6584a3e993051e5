#pragma once

#include <cstdint>

#include "core/io.h"
#include "core/result.h"
#include "core/task.h"
#include "fop/bodies.h"

namespace fopd::reqh {

// The memory that a fop's client has opened for the fop. Lives on the session's reactor. An
// interface, so that an operation does not depend on its fom, which owns it and implements this.
class ClientMemory {
public:
    enum class Direction : std::uint8_t { kPull, kPush };
    struct Move {
        const fop::SealedDescriptor* memory = nullptr;  // From the request.
        std::uint64_t offset = 0;
        core::Buffer buffer{};
        Direction direction = Direction::kPull;
    };

    // Ends at the fop's deadline, when the fop is cancelled, or when the client takes too long:
    // kClosed, as when the session is lost.
    virtual Task<Result<void>> move(Move what) = 0;

protected:
    ~ClientMemory() = default;
};

}  // namespace fopd::reqh

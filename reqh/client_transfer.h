#pragma once

#include <cstdint>

#include "core/io.h"
#include "core/result.h"
#include "core/task.h"
#include "fop/bodies.h"
#include "reqh/client_memory.h"
#include "reqh/running_fop.h"

namespace fopd::reqh {

// Moves bytes between a fop and the memory that its client has opened. Every transfer is started on
// the locality of the session, wherever the fop is.
class ClientTransfer {
public:
    // The fop outlives it.
    explicit ClientTransfer(const RunningFop& fop) : fop_(fop) {}

    // The descriptor is part of the request. Errors as in ClientMemory::move(); kClosed: the server
    // is stopping.
    Task<Result<void>> pull(const fop::SealedDescriptor* source, std::uint64_t offset,
                            core::Buffer into) const;
    Task<Result<void>> push(const fop::SealedDescriptor* target, std::uint64_t offset,
                            core::Buffer from) const;

private:
    Task<Result<void>> move(ClientMemory::Move what) const;

    const RunningFop& fop_;
};

}  // namespace fopd::reqh

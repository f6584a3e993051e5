#pragma once

#include "core/task.h"
#include "eh/small_file.h"
#include "eh/view_store.h"

namespace fopd::daemon {

// What a node keeps of its epochs outside of its process. Used on the reactor of the node's first
// locality.
class EpochStores {
public:
    virtual ~EpochStores() = default;

    virtual eh::SmallFile& incarnation() = 0;
    virtual eh::ViewStore& views() = 0;
    // Of epochs without peers.
    virtual eh::SmallFile& numbers() = 0;
    // Waits for the calls in flight, which are still answered. False: one has not ended by the
    // deadline, and this must not be destroyed.
    virtual Task<bool> close(Instant deadline) = 0;
};

}  // namespace fopd::daemon

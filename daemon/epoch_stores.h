#pragma once

#include "core/task.h"
#include "eh/small_file.h"
#include "eh/view_store.h"

namespace fopd::daemon {

// The durable state of a node's epochs. Used on the reactor of the node's first locality.
class EpochStores {
public:
    virtual ~EpochStores() = default;

    // For epochs with peers: the node's incarnation, and the views of the cluster.
    virtual eh::SmallFile& incarnation() = 0;
    virtual eh::ViewStore& views() = 0;
    // For epochs without peers: the epoch numbers that are reserved.
    virtual eh::SmallFile& numbers() = 0;
    // Waits for the calls in flight, which are still answered. False: one has not ended by the
    // deadline, and this must not be destroyed.
    virtual Task<bool> close(Instant deadline) = 0;
};

}  // namespace fopd::daemon

#pragma once

#include "core/reactor.h"
#include "eh/fold.h"
#include "eh/local.h"
#include "lrs/epoch_frame.h"

namespace fopd::daemon {

// The epochs of a node, on the reactor of its first locality. Outlives the localities.
struct NodeEpochs {
    // A locality that is not ready within it hangs.
    static constexpr Duration kTimeout = 5s;

    explicit NodeEpochs(core::Reactor& reactor)
        : handler(lrs::epoch_rules(kTimeout)), fold(reactor, handler) {}

    eh::LocalEpochHandler handler;
    eh::LocalityFold fold;
};

}  // namespace fopd::daemon

#pragma once

#include "core/reactor.h"
#include "eh/fold.h"
#include "eh/local.h"

namespace fopd::daemon {

// The epochs of a node, on the reactor of its first locality. Outlives the localities.
struct NodeEpochs {
    explicit NodeEpochs(core::Reactor& reactor) : fold(reactor, handler) {}

    eh::LocalEpochHandler handler;
    eh::LocalityFold fold;
};

}  // namespace fopd::daemon

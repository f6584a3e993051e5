#pragma once

#include "core/remote.h"
#include "core/task.h"
#include "objects/stores.h"
#include "reqh/operation.h"

namespace fopd::reqh {

// Calls `look(stores)` on each locality of the node, one after the other. The caller keeps `look`
// until this ends.
template <typename Look>
Task<void> at_every_locality(Operation* operation, Look* look) {
    for (objects::Stores* const there : operation->stores().all()) {
        auto job = [look, there] { (*look)(*there); };
        if (there == &operation->stores()) {
            job();
        } else {
            co_await core::run_on(operation->reactor(), there->parts().reactor, job);
        }
    }
}

}  // namespace fopd::reqh

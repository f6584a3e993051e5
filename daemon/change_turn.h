#pragma once

#include <expected>

#include "core/reactor.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "daemon/configuration.h"
#include "daemon/node_life.h"

namespace fopd::daemon {

// Lets operations that change the set of a node's disks, or need it unchanged, run one at a time.
// Lives on the control reactor.
class ChangeTurn {
public:
    // Both arguments outlive this object.
    ChangeTurn(core::Reactor& control, const NodeLife& life)
        : control_(control), life_(life), ended_(control) {}

    // Waits until the previous operation has called end(). Refuses as busy if that takes too long,
    // or if the node may not be changed then. An operation that is not refused must call end().
    Task<std::expected<void, Configuration::Refused>> begin();
    void end();
    // Waits until no operation runs. Returns false if one still runs at the deadline.
    Task<bool> wait_until_free(Instant deadline);

private:
    core::Reactor& control_;
    const NodeLife& life_;
    core::WaitQueue ended_;
    bool taken_ = false;
};

}  // namespace fopd::daemon

#pragma once

#include "daemon/node_epochs.h"
#include "fabric/rpc/incoming.h"

namespace fopd::daemon {

// Takes the fops between daemons out of the fops of a locality, before they are queued: no rule or
// drain holds them up, and no limit but that of the memory for requests.
class PeerFops final : public fabric::IncomingUser {
public:
    // All outlive it. `epochs`: null unless this is the first locality.
    PeerFops(fabric::IncomingUser& others, NodeEpochs* epochs) : others_(others), epochs_(epochs) {}

    void on_incoming(fabric::IncomingFop& fop) override;

private:
    fabric::IncomingUser& others_;
    NodeEpochs* const epochs_;
};

}  // namespace fopd::daemon

#include "daemon/node_life.h"

#include <string>

#include "core/ensure.h"
#include "daemon/locality.h"

namespace fopd::daemon {

const char* to_string(NodeState state) {
    switch (state) {
        case NodeState::kStarting: return "starting";
        case NodeState::kReady: return "ready";
        case NodeState::kDraining: return "draining";
        case NodeState::kDrained: return "drained";
        case NodeState::kStopping: return "stopping";
        case NodeState::kStopped: return "stopped";
    }
    return "unknown";
}

void NodeLife::enter(NodeState state) {
    ENSURE(state > this->state());
    state_.store(state, std::memory_order_relaxed);
    if (state == NodeState::kReady) ready_at_ = control_.now();
}

std::expected<void, Configuration::Refused> NodeLife::check_ready() const {
    if (may_change()) return {};
    const char* const state =
        this->state() == NodeState::kReady ? "stopping" : to_string(this->state());
    return std::unexpected(
        Configuration::Refused{.busy = true, .problems = {std::string("the node is ") + state}});
}

bool NodeLife::clients_may_return() const {
    return control_.now() < after(ready_at_, kBackWithin);
}

}  // namespace fopd::daemon

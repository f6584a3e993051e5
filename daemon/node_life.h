#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <expected>

#include "core/reactor.h"
#include "daemon/configuration.h"

namespace fopd::daemon {

enum class NodeState : std::uint8_t {
    kStarting,
    kReady,
    kDraining,  // Takes no new work; running fops may end.
    kDrained,   // No fop runs any more; waits for stop().
    kStopping,
    kStopped,
};
inline constexpr std::array kNodeStates{NodeState::kStarting, NodeState::kReady,
                                        NodeState::kDraining, NodeState::kDrained,
                                        NodeState::kStopping, NodeState::kStopped};
const char* to_string(NodeState state);

// The state of a node, and what the node may do in that state. Lives on the control reactor, which
// outlives it.
class NodeLife {
public:
    explicit NodeLife(const core::Reactor& control)
        : control_(control), created_at_(control.now()) {}
    NodeLife(const NodeLife&) = delete;
    NodeLife& operator=(const NodeLife&) = delete;

    // States are entered in the order of their enumerators; some may be skipped.
    void enter(NodeState state);
    // Announces a stop, which may begin later.
    void request_stop() { stop_requested_ = true; }

    bool stop_requested() const { return stop_requested_; }
    // From any thread.
    NodeState state() const { return state_.load(std::memory_order_relaxed); }
    // From any thread.
    Instant created_at() const { return created_at_; }
    // kNever before the node is ready.
    Instant ready_at() const { return ready_at_; }
    // Whether the localities answer questions.
    bool serving() const {
        return state() == NodeState::kReady || state() == NodeState::kDraining ||
               state() == NodeState::kDrained;
    }
    // Whether settings and disks may be changed.
    bool may_change() const { return state() == NodeState::kReady && !stop_requested_; }
    // Refuses as busy unless may_change().
    std::expected<void, Configuration::Refused> check_ready() const;
    // Whether clients of an earlier life of the node may still reconnect.
    bool clients_may_return() const;

private:
    const core::Reactor& control_;
    const Instant created_at_;
    Instant ready_at_ = kNever;
    std::atomic<NodeState> state_ = NodeState::kStarting;
    bool stop_requested_ = false;
};

}  // namespace fopd::daemon

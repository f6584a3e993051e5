#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/virtual_world.h"
#include "sim/fault_plan.h"
#include "sim/simulated_node.h"

namespace fopd::sim {

struct ClusterOptions {
    std::uint32_t nodes = 1;
    std::uint32_t localities = 2;
    Duration watchdog = 10s;
    Duration drain_timeout = 30s;
};

// Many daemons in one process, on one time line, and the faults of a plan. After every step it
// holds the nodes to what they promise; the first broken promise is kept as a sentence.
class Cluster {
public:
    Cluster(std::uint64_t seed, ClusterOptions options);
    ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    core::VirtualWorld& world() { return world_; }
    SimulatedNode& node(std::uint32_t index) { return *nodes_[index]; }
    std::uint32_t node_count() const { return options_.nodes; }

    void start_all();
    // Runs for `span`, carrying out what is due of `plan`. False when a promise was broken.
    bool run_for(Duration span, const std::vector<Fault>& plan = {});
    // Mends every configuration, restarts who has ended or will, and gives the nodes `patience` to
    // be ready. Stalls end by themselves; `patience` is longer than they are.
    bool recover(Duration patience);
    // SIGTERM to every node; false unless all end within `patience`.
    bool stop_all(Duration patience);

    // Empty as long as every promise was kept.
    const std::string& broken_promise() const { return broken_promise_; }
    std::uint64_t faults_carried_out() const { return faults_carried_out_; }

private:
    struct Due {
        Instant at;
        std::uint64_t order;
        std::uint32_t node;
        enum class What : std::uint8_t { kStart, kMendConfiguration } what;
    };

    void carry_out(const Fault& fault);
    void carry_out_due();
    void look_at(SimulatedNode& node);
    void step_until(Instant limit);
    Instant next_due() const;
    void break_promise(std::string sentence);

    const ClusterOptions options_;
    core::VirtualWorld world_;
    std::vector<std::unique_ptr<SimulatedNode>> nodes_;
    std::vector<Due> due_;
    std::uint64_t due_count_ = 0;
    std::vector<Instant>
        excused_until_;          // Per node: a stall explains a hungry watchdog until then.
    std::vector<bool> restart_;  // Per node: start again when it has ended.
    std::string broken_promise_;
    std::uint64_t faults_carried_out_ = 0;
};

}  // namespace fopd::sim

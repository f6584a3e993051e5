#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/virtual_world.h"
#include "eh/handler.h"
#include "eh/peers/handler.h"
#include "sim/call_book.h"
#include "sim/epochs/epoch_watch.h"
#include "sim/epochs/member_states.h"
#include "sim/epochs/numbered_calls.h"
#include "sim/epochs/simulated_view_store.h"
#include "sim/fault_plan.h"
#include "sim/simulated_client.h"
#include "sim/simulated_network.h"
#include "sim/simulated_node.h"

namespace fopd::sim {

struct ClusterOptions {
    std::uint32_t nodes = 1;
    std::uint32_t localities = 2;
    std::uint32_t disks = 0;  // Per node.
    Duration watchdog = 10s;
    Duration drain_timeout = 30s;
    // Clients call the nodes over a network; without clients there is no network.
    std::uint32_t clients = 0;
    std::uint32_t lines = 2;          // The number of nodes a client calls concurrently.
    Duration client_pause_max = 20s;  // Between two rounds of calls on a line.
    bool quiet_clients = false;       // Clients make only the calls that a test asks for.
    Wire wire = Wire::kMessages;
    // The nodes move from epoch to epoch together. Their list of members is in a file of node 0,
    // the root, or if it is shared, in a store that any node can reach; then any can be root.
    bool peers = false;
    bool shared_views = false;
    std::uint32_t fanout = 16;          // The number of nodes that report to one node.
    ViewStoreFaults store_faults = {};  // Of the shared store.
    // With a pool, each node has a tape library.
    SimulatedLibraryOptions library = {};
    std::optional<library::TapePoolOptions> tape_pool = {};
};

// Many daemons and their clients in one process, on one time line, under the faults of a plan.
// After every step the cluster checks the daemons' promises, and with each call for an epoch, each
// answer and each committed view the laws of epochs. It keeps the first broken promise as a
// sentence.
class Cluster : eh::peers::EpochObserver {
public:
    Cluster(std::uint64_t seed, ClusterOptions options);
    virtual ~Cluster();
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;

    core::VirtualWorld& world() { return world_; }
    SimulatedNode& node(std::uint32_t index) { return *nodes_[index]; }
    static std::string node_name(std::size_t index) { return "node-" + std::to_string(index); }
    std::uint32_t node_count() const { return options_.nodes; }
    fabric::MemNetwork& network() { return network_.links(); }
    SimulatedNetwork& hosts() { return network_; }
    const fabric::MemSockets* sockets() const { return network_.sockets(); }
    SimulatedViewRegister& views() { return views_; }
    const EpochWatch& epochs() const { return epochs_; }
    const NumberedCalls& epoch_calls() const { return epoch_calls_; }
    const MemberStates& member_states() const { return member_states_; }
    // Epoch messages that were sent when no node had been waiting for an epoch for longer than the
    // grace.
    struct IdleMessages {
        std::uint64_t beats = 0;
        std::uint64_t others = 0;
    };
    const IdleMessages& idle_messages() const { return idle_messages_; }
    SimulatedClient& client(std::uint32_t index) { return *clients_[index]; }
    CallBook& book() { return book_; }

    void start_all();
    // Runs for `span` and applies the faults of `plan` when they are due. Returns false if a
    // promise was broken.
    bool run_for(Duration span, const std::vector<Fault>& plan = {});
    // Repairs all configurations and links, and restarts the nodes and clients that have ended or
    // are about to end. Returns whether all are ready and connected within `patience`, which must
    // be longer than any stall.
    bool recover(Duration patience);
    // Makes every client call every node. Returns whether all calls succeed within `patience`.
    bool visit_all(Duration patience);
    // Stops all clients. Returns false unless they end within `patience`, and no node holds
    // anything for a client any more.
    bool part_all(Duration patience);
    // Whether all nodes are members of epochs, and begin new ones, within `patience`.
    bool move_together(Duration patience);
    // Sends SIGTERM to every node. Returns whether all nodes end within `patience`.
    bool stop_all(Duration patience);

    // Empty as long as every promise was kept.
    const std::string& broken_promise() const { return broken_promise_; }
    std::uint64_t faults_carried_out() const { return faults_carried_out_; }
    bool has_carried_out(Fault::Kind kind) const { return carried_out_.contains(kind); }

private:
    // A fault in progress.
    struct Due {
        Instant end_at;
        Fault fault;
    };

    void carry_out(const Fault& fault);
    void carry_out_on_network(const Fault& fault);
    void carry_out_on_client(const Fault& fault);
    void crash_doomed();
    void carry_out_due();
    void end(const Fault& fault);
    template <typename Visit>
    void for_each_link(const Fault& fault, Visit visit);
    void look_at_all();
    void look_at(SimulatedNode& node);
    std::string epoch_configuration();
    // Each contribution of a node gets the numbers of its calls appended, to check the results.
    eh::EpochRules rules(const eh::EpochRules& plain) const override;
    void mark(const std::string& node, std::vector<std::byte>& data) override;
    void on_call(const std::string& node, Duration longest) override;
    void on_leave(const std::string& node, eh::Incarnation incarnation) override;
    bool on_effect(const std::string& node, const eh::peers::Effect& effect) override;
    void on_answer(const std::string& node, eh::Incarnation incarnation,
                   eh::peers::Answer& answer) override;
    void on_settled(const std::string& node, const eh::peers::Member& member) override;
    void note_idle(const eh::peers::Effect& effect);
    std::size_t caller(const std::string& node);
    void note_life(std::size_t node);
    Duration frozen_in_call(std::size_t node) const;
    void look_at_calls();
    void look_at_views();
    void look_for_broken_protocol(SimulatedNode& node);
    void look_for_unexplained_errors(SimulatedNode& node);
    void step_until(Instant limit);
    Instant next_due() const;
    void break_promise(std::string sentence);

    const ClusterOptions options_;
    core::VirtualWorld world_;
    SimulatedNetwork network_;
    SimulatedViewRegister views_;
    CallBook book_;
    EpochWatch epochs_;
    NumberedCalls epoch_calls_;
    MemberStates member_states_;
    IdleMessages idle_messages_;
    Instant last_answer_at_{};                // Of any call for an epoch.
    std::vector<std::uint64_t> epoch_lives_;  // Per node: the life that made its last call.
    std::vector<std::unique_ptr<SimulatedNode>> nodes_;
    std::vector<std::unique_ptr<SimulatedClient>> clients_;
    std::vector<Due> due_;        // In the order of their start.
    std::vector<Fault> awaited_;  // Of the kind kCrashAt: the moment has not come yet.
    std::vector<bool> doomed_;    // Per node: it is killed when the present turn ends.
    Instant looked_closely_at_ = Instant::min();
    // Per node: until then, a stall explains a late feed of the watchdog.
    std::vector<Instant> excused_until_;
    std::vector<bool> restart_;  // Per node: to be restarted when it has ended.
    std::string broken_promise_;
    std::uint64_t faults_carried_out_ = 0;
    std::set<Fault::Kind> carried_out_;
};

}  // namespace fopd::sim

#include "sim/cluster.h"

#include <algorithm>

namespace fopd::sim {

Cluster::Cluster(std::uint64_t seed, ClusterOptions options)
    : options_(options),
      world_(seed),
      excused_until_(options.nodes, Instant::min()),
      restart_(options.nodes, false) {
    for (std::uint32_t i = 0; i < options_.nodes; ++i) {
        nodes_.push_back(std::make_unique<SimulatedNode>(
            world_, SimulatedNodeOptions{.name = "node-" + std::to_string(i),
                                         .index = i,
                                         .localities = options_.localities,
                                         .watchdog = options_.watchdog,
                                         .drain_timeout = options_.drain_timeout}));
    }
}

Cluster::~Cluster() = default;

void Cluster::start_all() {
    for (const auto& node : nodes_) node->start();
}

bool Cluster::run_for(Duration span, const std::vector<Fault>& plan) {
    const Instant began_at = world_.now();
    const Instant end = after(began_at, span);
    std::size_t next = 0;
    while (broken_promise_.empty()) {
        const Instant fault_at =
            next < plan.size() ? began_at + plan[next].at.time_since_epoch() : kNever;
        step_until(std::min({end, fault_at, next_due()}));
        carry_out_due();
        if (world_.now() >= fault_at) carry_out(plan[next++]);
        if (world_.now() >= end && fault_at > end) break;
    }
    return broken_promise_.empty();
}

// Lets everything happen that happens up to `limit`, and looks at the nodes at each new instant.
void Cluster::step_until(Instant limit) {
    Instant looked_at = world_.now();
    while (broken_promise_.empty() && world_.step(limit)) {
        if (world_.now() == looked_at) continue;
        looked_at = world_.now();
        for (const auto& node : nodes_) look_at(*node);
    }
    for (const auto& node : nodes_) look_at(*node);
}

void Cluster::carry_out(const Fault& fault) {
    SimulatedNode& node = *nodes_[fault.node];
    if (!node.running()) return;
    ++faults_carried_out_;
    const Instant until = after(world_.now(), fault.span);
    Instant& excused_until = excused_until_[fault.node];
    switch (fault.kind) {
        case Fault::Kind::kCrash:
            node.crash();
            due_.push_back({until, due_count_++, fault.node, Due::What::kStart});
            break;
        case Fault::Kind::kStallLocality:
            world_.stall(node.locality(fault.locality), until);
            excused_until = std::max(excused_until, until);
            break;
        case Fault::Kind::kStallNode:
            world_.stall(node.control(), until);
            for (std::uint32_t i = 0; i < options_.localities; ++i) {
                world_.stall(node.locality(i), until);
            }
            excused_until = std::max(excused_until, until);
            break;
        case Fault::Kind::kReload:
            if (!node.node().reload() && node.node().accepts_work() &&
                node.configuration_is_good()) {
                break_promise("a good configuration was refused");
            }
            break;
        case Fault::Kind::kBadReload:
            node.set_configuration("node: { nmae: x }\n");
            if (node.node().reload()) break_promise("a bad configuration was accepted");
            due_.push_back({until, due_count_++, fault.node, Due::What::kMendConfiguration});
            break;
        case Fault::Kind::kDrain:
            node.drain();
            restart_[fault.node] = true;
            due_.push_back({until, due_count_++, fault.node, Due::What::kStart});
            break;
        case Fault::Kind::kRestart:
            node.terminate();
            restart_[fault.node] = true;
            due_.push_back({until, due_count_++, fault.node, Due::What::kStart});
            break;
    }
}

Instant Cluster::next_due() const {
    Instant next = kNever;
    for (const Due& due : due_) next = std::min(next, due.at);
    return next;
}

void Cluster::carry_out_due() {
    std::vector<Due> ripe;
    std::erase_if(due_, [&](const Due& due) {
        if (due.at > world_.now()) return false;
        ripe.push_back(due);
        return true;
    });
    for (const Due& due : ripe) {
        SimulatedNode& node = *nodes_[due.node];
        if (due.what == Due::What::kMendConfiguration) {
            node.set_configuration(node.good_configuration());
            continue;
        }
        // A node that drained, or still stops, is told to end and comes back when it has.
        node.terminate();
        restart_[due.node] = true;
    }
    for (std::uint32_t i = 0; i < options_.nodes; ++i) {
        if (restart_[i] && !nodes_[i]->running()) {
            restart_[i] = false;
            // Nobody starts a daemon on a file it has just refused.
            nodes_[i]->set_configuration(nodes_[i]->good_configuration());
            nodes_[i]->start();
        }
    }
}

// The promises of one node.
void Cluster::look_at(SimulatedNode& node) {
    node.bury();
    const std::string name = node.name();
    if (node.start_failed()) break_promise(name + " did not start");
    if (!node.running()) return;
    SimulatedManager& manager = node.manager();
    const std::size_t index = node.index();
    if (world_.now() <= excused_until_[index]) {
        manager.forget_hunger();
    } else if (manager.longest_hunger() > options_.watchdog) {
        break_promise(name + " turned but did not feed the watchdog");
    }
}

bool Cluster::recover(Duration patience) {
    due_.clear();
    for (std::uint32_t i = 0; i < options_.nodes; ++i) {
        SimulatedNode& node = *nodes_[i];
        node.set_configuration(node.good_configuration());
        // One that was told to end may still look ready; it keeps its mark.
        if (!node.running() || !node.node().accepts_work()) restart_[i] = true;
        if (restart_[i]) node.terminate();
    }
    const Instant end = after(world_.now(), patience);
    while (broken_promise_.empty() && world_.now() < end) {
        carry_out_due();
        step_until(after(world_.now(), 100ms));
    }
    for (const auto& node : nodes_) {
        if (!node->running() || !node->node().accepts_work()) {
            break_promise(node->name() + " is not ready again after the faults");
        }
    }
    return broken_promise_.empty();
}

bool Cluster::stop_all(Duration patience) {
    for (const auto& node : nodes_) node->terminate();
    step_until(after(world_.now(), patience));
    for (const auto& node : nodes_) {
        if (node->running()) break_promise(node->name() + " did not stop");
    }
    return broken_promise_.empty();
}

void Cluster::break_promise(std::string sentence) {
    if (broken_promise_.empty()) broken_promise_ = std::move(sentence);
}

}  // namespace fopd::sim

#include "sim/cluster.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::sim {

namespace {

// So long that a transfer to a client and back takes longer than kSlowFop: then a node logs every
// fop that has moved client memory.
constexpr fabric::DelayRange kDelay{.min = 300us, .max = 2ms};
constexpr Duration kSlowFop = 1ms;
constexpr fabric::DelayRange kLongDelay{.min = 1ms, .max = 500ms};
// The longest time to connect to a running node.
constexpr Duration kConnectingMax = 1s;
// The interval of checks that are too expensive after every step.
constexpr Duration kCloseLookInterval = 1s;

// The smallest disk.
constexpr std::uint64_t kDiskBytes = 16UL << 20;

fop::Key peer_key() {
    return fop::parse_key(std::string(64, '5')).value();
}

std::vector<std::string> node_names(std::uint32_t nodes) {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < nodes; ++i) names.push_back(Cluster::node_name(i));
    return names;
}

std::string client_name(std::uint32_t index) {
    return "client-" + std::to_string(index);
}

}  // namespace

Cluster::Cluster(std::uint64_t seed, ClusterOptions options)
    : options_(options),
      world_(seed),
      network_(world_, {.seed = seed, .delay = kDelay, .wire = options.wire}),
      views_(world_, seed, options.store_faults),
      book_(world_),
      epoch_calls_(node_names(options.nodes)),
      member_states_(node_names(options.nodes), options.fanout),
      epoch_lives_(options.nodes, 0),
      doomed_(options.nodes, false),
      excused_until_(options.nodes, Instant::min()),
      restart_(options.nodes, false) {
    for (std::uint32_t i = 0; i < options_.nodes; ++i) {
        SimulatedNodeOptions node{.name = node_name(i),
                                  .index = i,
                                  .localities = options_.localities,
                                  .watchdog = options_.watchdog,
                                  .drain_timeout = options_.drain_timeout,
                                  .library = options_.library,
                                  .tape_pool = options_.tape_pool};
        for (std::uint32_t disk = 0; disk < options_.disks; ++disk) {
            node.disks.push_back({.name = "d" + std::to_string(disk), .size_bytes = kDiskBytes});
        }
        if (options_.peers) {
            node.epochs = epoch_configuration();
            node.peer_key = peer_key();
            node.epoch_observer = this;
            if (options_.shared_views) node.views = &views_;
        }
        if (options_.clients > 0 || options_.peers) {
            node.network = &network_.transport();
            node.listen = format_address(network_.address_of(node.name, 1));
            node.protection = network_.protection();
            node.slow_fop = kSlowFop;
            node.observer = [this, i](std::string_view name, std::span<const core::Field> fields) {
                if (name == "reqh.slow_fop") book_.see_fop(i, nodes_[i]->life_count(), fields);
            };
        }
        nodes_.push_back(std::make_unique<SimulatedNode>(world_, std::move(node)));
    }
    const auto life_of = [this](std::uint32_t node) -> std::uint64_t {
        SimulatedNode& asked = *nodes_[node];
        const bool serves = asked.running() && asked.node().state() == daemon::NodeState::kReady;
        return serves ? asked.life_count() : 0;
    };
    for (std::uint32_t i = 0; i < options_.clients; ++i) {
        clients_.push_back(std::make_unique<SimulatedClient>(
            world_, SimulatedClientOptions{.name = client_name(i),
                                           .index = i,
                                           .nodes = options_.nodes,
                                           .network = &network_,
                                           .book = &book_,
                                           .life_of = life_of,
                                           .lines = options_.lines,
                                           .pause_max = options_.client_pause_max,
                                           .quiet = options_.quiet_clients}));
    }
}

Cluster::~Cluster() = default;

void Cluster::start_all() {
    for (const auto& node : nodes_) node->start();
    for (const auto& client : clients_) client->start();
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

// Runs the world up to `limit`, and checks the nodes at each new instant.
void Cluster::step_until(Instant limit) {
    Instant looked_at = world_.now();
    while (broken_promise_.empty() && world_.step(limit)) {
        crash_doomed();
        if (world_.now() == looked_at) continue;
        looked_at = world_.now();
        look_at_all();
    }
    look_at_all();
}

void Cluster::look_at_all() {
    for (const auto& node : nodes_) look_at(*node);
    for (const auto& client : clients_) {
        client->bury();
        client->look();
    }
    book_.look();
    if (options_.peers) {
        look_at_views();
        look_at_calls();
    }
    if (after(looked_closely_at_, kCloseLookInterval) <= world_.now()) {
        looked_closely_at_ = world_.now();
        for (const auto& node : nodes_) look_for_broken_protocol(*node);
    }
    if (!book_.broken_promise().empty()) break_promise(book_.broken_promise());
}

void Cluster::carry_out(const Fault& fault) {
    if (is_of_network(fault.kind)) return carry_out_on_network(fault);
    if (fault.kind == Fault::Kind::kCrashClient) return carry_out_on_client(fault);
    if (fault.kind == Fault::Kind::kCrashAt) return awaited_.push_back(fault);
    SimulatedNode& node = *nodes_[fault.node];
    if (!node.running()) return;
    ++faults_carried_out_;
    carried_out_.insert(fault.kind);
    const Instant until = after(world_.now(), fault.span);
    Instant& excused_until = excused_until_[fault.node];
    switch (fault.kind) {
        case Fault::Kind::kCrash:
            look_for_broken_protocol(node);
            node.crash();
            due_.push_back({until, fault});
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
            node.reload([this, &node](const daemon::NodeReload::Outcome& reloaded) {
                if (!reloaded && !reloaded.error().busy && node.configuration_is_good()) {
                    break_promise("a good configuration was refused");
                }
            });
            break;
        case Fault::Kind::kBadReload:
            node.set_configuration("node: { nmae: x }\n");
            node.reload([this, &node](const daemon::NodeReload::Outcome& reloaded) {
                if (reloaded && !node.configuration_is_good()) {
                    break_promise("a bad configuration was accepted");
                }
            });
            due_.push_back({until, fault});
            break;
        case Fault::Kind::kDrain:
            node.drain();
            restart_[fault.node] = true;
            due_.push_back({until, fault});
            break;
        case Fault::Kind::kRestart:
            node.terminate();
            restart_[fault.node] = true;
            due_.push_back({until, fault});
            break;
        case Fault::Kind::kClockJump: node.jump_clock(fault.span); break;
        default: ensure_failed("a fault of a node", __FILE__, __LINE__);
    }
}

// Visits the link to the node of each client, or of the other node, that the fault affects.
template <typename Visit>
void Cluster::for_each_link(const Fault& fault, Visit visit) {
    if (fault.peer) {
        visit(fabric::MemRoute{.from = nodes_[*fault.peer]->name(),
                               .to = nodes_[fault.node]->name()});
        return;
    }
    for (std::uint32_t i = 0; i < options_.clients; ++i) {
        if (fault.client != Fault::kEveryClient && fault.client != i) continue;
        visit(fabric::MemRoute{.from = clients_[i]->name(), .to = nodes_[fault.node]->name()});
    }
}

void Cluster::carry_out_on_network(const Fault& fault) {
    ++faults_carried_out_;
    carried_out_.insert(fault.kind);
    const Instant until = after(world_.now(), fault.span);
    for_each_link(fault, [&](const fabric::MemRoute& there) {
        const fabric::MemRoute back{.from = there.to, .to = there.from};
        switch (fault.kind) {
            case Fault::Kind::kDelay:
                network().set_delay(there, kLongDelay);
                network().set_delay(back, kLongDelay);
                break;
            case Fault::Kind::kStallLink: network().stall(there, until); break;
            case Fault::Kind::kLose:
                network().lose_connections(there, fabric::LossNotice::kBoth);
                break;
            case Fault::Kind::kLoseAtNode:
                network().lose_connections(back, fabric::LossNotice::kFrom);
                break;
            case Fault::Kind::kLoseAtClient:
                network().lose_connections(there, fabric::LossNotice::kFrom);
                break;
            case Fault::Kind::kPartition: network().partition(there); break;
            case Fault::Kind::kBlockToNode: network().block(there); break;
            case Fault::Kind::kBlockToClient: network().block(back); break;
            case Fault::Kind::kRefuseConnects: network().refuse_connects(there); break;
            default: ensure_failed("a fault of the network", __FILE__, __LINE__);
        }
    });
    due_.push_back({until, fault});
}

void Cluster::carry_out_on_client(const Fault& fault) {
    SimulatedClient& client = *clients_[fault.client];
    if (!client.running()) return;
    ++faults_carried_out_;
    carried_out_.insert(fault.kind);
    client.crash();
    due_.push_back({after(world_.now(), fault.span), fault});
}

void Cluster::end(const Fault& fault) {
    for_each_link(fault, [&](const fabric::MemRoute& there) {
        const fabric::MemRoute back{.from = there.to, .to = there.from};
        switch (fault.kind) {
            case Fault::Kind::kDelay:
                network().set_delay(there, kDelay);
                network().set_delay(back, kDelay);
                break;
            case Fault::Kind::kPartition: network().heal(there); break;
            case Fault::Kind::kBlockToNode: network().unblock(there); break;
            case Fault::Kind::kBlockToClient: network().unblock(back); break;
            case Fault::Kind::kRefuseConnects: network().allow_connects(there); break;
            default: break;  // Has no end, or is not a network fault.
        }
    });
    SimulatedNode& node = *nodes_[fault.node];
    switch (fault.kind) {
        case Fault::Kind::kBadReload: node.set_configuration(node.good_configuration()); break;
        case Fault::Kind::kCrash:
        case Fault::Kind::kCrashAt:
        case Fault::Kind::kDrain:
        case Fault::Kind::kRestart:
            // A node that is drained or still stopping is terminated, and restarted when it has
            // ended.
            node.terminate();
            restart_[fault.node] = true;
            break;
        case Fault::Kind::kCrashClient:
            if (!clients_[fault.client]->running()) clients_[fault.client]->start();
            break;
        default: break;
    }
}

Instant Cluster::next_due() const {
    Instant next = kNever;
    for (const Due& due : due_) next = std::min(next, due.end_at);
    return next;
}

void Cluster::carry_out_due() {
    std::vector<Fault> ripe;
    std::erase_if(due_, [&](const Due& due) {
        if (due.end_at > world_.now()) return false;
        ripe.push_back(due.fault);
        return true;
    });
    for (const Fault& fault : ripe) end(fault);
    for (std::uint32_t i = 0; i < options_.nodes; ++i) {
        if (restart_[i] && !nodes_[i]->running()) {
            restart_[i] = false;
            // An administrator repairs a refused configuration before a start.
            nodes_[i]->set_configuration(nodes_[i]->good_configuration());
            nodes_[i]->start();
        }
    }
}

// Checks the promises of one node.
void Cluster::look_at(SimulatedNode& node) {
    node.bury();
    if (node.start_failed()) break_promise(node.name() + " did not start");
    if (!node.running()) return;
    SimulatedManager& manager = node.manager();
    const std::size_t index = node.index();
    if (world_.now() <= excused_until_[index]) {
        manager.forget_hunger();
    } else if (manager.longest_hunger() > options_.watchdog) {
        break_promise(node.name() + " turned but did not feed the watchdog");
    }
}

// All clients keep to the protocol, under all network faults.
void Cluster::look_for_broken_protocol(SimulatedNode& node) {
    if (!node.running() || !node.node().opened()) return;
    for (const auto& locality : node.node().localities()) {
        const fabric::HostStatistics* const seen = locality->host_statistics();
        if (seen == nullptr) continue;
        if (seen->broken.get() + seen->garbage.get() + seen->unsealed.get() > 0) {
            break_promise(node.name() + " has seen the protocol broken");
        }
    }
}

// Faults of the network and of clients must not cause errors in a node.
void Cluster::look_for_unexplained_errors(SimulatedNode& node) {
    const auto had = [this](Fault::Kind kind) { return carried_out_.contains(kind); };
    const bool stalled = had(Fault::Kind::kStallLocality) || had(Fault::Kind::kStallNode);
    for (const std::string& name : node.events().errors()) {
        const bool explained = (name == "daemon.config_refused" && had(Fault::Kind::kBadReload)) ||
                               (name == "daemon.locality_stuck" && stalled) ||
                               (name == "daemon.not_stopped" && stalled);
        if (!explained) break_promise(node.name() + " has logged the error " + name);
    }
}

bool Cluster::recover(Duration patience) {
    for (const Due& due : due_) {
        if (is_of_network(due.fault.kind)) end(due.fault);
    }
    due_.clear();
    awaited_.clear();
    for (std::uint32_t i = 0; i < options_.nodes; ++i) {
        SimulatedNode& node = *nodes_[i];
        node.set_configuration(node.good_configuration());
        // A node that was terminated may still look ready; it stays marked for restart.
        if (!node.running() || node.node().state() != daemon::NodeState::kReady) restart_[i] = true;
        if (restart_[i]) node.terminate();
    }
    for (const auto& client : clients_) {
        if (!client->running()) client->start();
    }
    const Instant end_at = after(world_.now(), patience);
    while (broken_promise_.empty() && world_.now() < end_at) {
        carry_out_due();
        step_until(after(world_.now(), 100ms));
    }
    for (const auto& node : nodes_) {
        if (!node->running() || node->node().state() != daemon::NodeState::kReady) {
            break_promise(node->name() + " is not ready again after the faults");
            continue;
        }
        for (const daemon::DiskReport& disk : node->node().disks().reports()) {
            if (disk.state == std::string_view("good")) continue;
            break_promise(node->name() + ": disk " + disk.name + " is " + disk.state + ": " +
                          disk.reason);
        }
    }
    for (const auto& client : clients_) {
        if (client->longest_disconnection() > kConnectingMax) {
            break_promise(client->name() + " is not connected again after the faults");
        }
    }
    return broken_promise_.empty();
}

bool Cluster::visit_all(Duration patience) {
    for (const auto& client : clients_) client->visit_all(patience);
    step_until(after(world_.now(), patience));
    for (const auto& client : clients_) {
        if (client->visiting()) break_promise(client->name() + " does not get to every node");
    }
    return broken_promise_.empty();
}

bool Cluster::part_all(Duration patience) {
    for (const auto& client : clients_) client->leave();
    step_until(after(world_.now(), patience));
    for (const auto& client : clients_) {
        if (client->running()) break_promise(client->name() + " did not leave");
    }
    if (broken_promise_.empty() && book_.under_way() > 0)
        break_promise("a call outlasts its client");
    for (const auto& node : nodes_) {
        // Other nodes keep their sessions.
        if (!node->running() || !node->node().opened() || options_.peers) continue;
        for (const auto& locality : node->node().localities()) {
            if (!locality->at_rest())
                break_promise(node->name() + " still holds what was clients'");
        }
    }
    for (const auto& node : nodes_) look_for_unexplained_errors(*node);
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

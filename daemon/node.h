#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/gate.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "daemon/change_turn.h"
#include "daemon/class_ledger.h"
#include "daemon/configuration.h"
#include "daemon/device_changes.h"
#include "daemon/device_requests.h"
#include "daemon/device_warnings.h"
#include "daemon/disk_checks.h"
#include "daemon/io_sched_changes.h"
#include "daemon/listener.h"
#include "daemon/locality.h"
#include "daemon/locality_orders.h"
#include "daemon/locality_questions.h"
#include "daemon/locality_updates.h"
#include "daemon/locality_watch.h"
#include "daemon/lrs_changes.h"
#include "daemon/missing_disks.h"
#include "daemon/node_access.h"
#include "daemon/node_backup.h"
#include "daemon/node_disks.h"
#include "daemon/node_epochs.h"
#include "daemon/node_layout.h"
#include "daemon/node_life.h"
#include "daemon/node_reload.h"
#include "daemon/node_world.h"
#include "daemon/rule_warnings.h"
#include "daemon/space_watch.h"
#include "daemon/start_problem.h"
#include "daemon/tape_watch.h"
#include "objects/name_parts.h"

namespace fopd::daemon {

// The problem that start() returns if it cannot listen at `address`.
StartProblem cannot_listen(const fabric::Address& address, const Error& error);

// The daemon without the process around it: starts the localities, watches them, reloads, drains
// and stops. The same code runs as a systemd service and by the dozen in the simulated world.
// Everything happens on the control reactor.
class Node {
public:
    Node(NodeWorld world, NodeOptions options);
    ~Node();
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    // Starts the node; may be called once. The node is ready when start() returns without a
    // problem. A request_stop() meanwhile ends start() early and without a problem.
    Task<Started<void>> start();

    // Refuses new work, and waits until all running fops have ended or the drain timeout has
    // passed. A second call during a drain waits for the end of the same drain.
    Task<LeftRunning> drain();

    // Drains, and releases what start() acquired; may be called once. Returns false if a locality
    // does not answer, whose resources cannot be released. The node may be destroyed after stop()
    // has returned and the reactors of all localities have ended.
    Task<bool> stop();
    // After stop(): drives had not ended their operations in time. All disks are closed, but the
    // node cannot be destroyed before the coroutines of its localities.
    bool left_on_tape() const { return left_on_tape_; }
    // A file of epochs did not answer.
    bool left_in_file() const { return epochs_.hangs(); }

    // Reads the configuration again and applies what can change at run time; see NodeReload.
    Task<NodeReload::Outcome> reload() { return reload_.run(); }
    NodeReload& reloads() { return reload_; }
    const NodeReload& reloads() const { return reload_; }
    // The changes that the last reload could not make, as texts for people; empty if it made all.
    const std::vector<std::string>& reload_problems() const { return reload_.problems(); }

    // Announces a call of stop(): a running start() returns early, and a running backup is given
    // up.
    void request_stop() {
        life_.request_stop();
        backup_.give_up();
    }

    Instant now() const { return world_.control.now(); }
    const devices::NodeId& id() const { return world_.id; }
    NodeState state() const { return life_.state(); }
    const NodeLife& life() const { return life_; }
    // Whether start() has set up all localities. Any thread.
    bool opened() const { return opened_.load(std::memory_order_acquire); }
    const std::vector<std::unique_ptr<Locality>>& localities() const { return localities_; }
    std::vector<std::unique_ptr<Locality>>& localities() { return localities_; }
    bool buffers_registered(std::size_t locality) const { return registered_[locality]; }
    std::vector<Warning> warnings() const;
    // Where clients may connect.
    const std::vector<fabric::Address>& addresses() const { return addresses_; }
    // All configured disks, also those that could not be opened.
    const NodeDisks& disks() const { return disks_; }
    // The slots whose disks are not open.
    const MissingDisks& missing() const { return missing_; }
    // The pools and slots that the localities use.
    const NodeLayout& layout() const { return layout_; }

    // Used only while life().serving().
    LocalityQuestions& questions() { return questions_; }
    DiskChecks& checks() { return checks_; }
    // Each of these refuses requests that the node cannot serve in its present state.
    LrsChanges& lrs() { return lrs_; }
    const RuleWarnings& rule_warnings() const { return rule_warnings_; }
    IoSchedChanges& io_sched() { return io_sched_; }
    DeviceRequests& devices() { return device_requests_; }
    NodeBackup& backup() { return backup_; }
    // From any thread.
    const ClassLedger& class_ledger() const { return class_ledger_; }
    const LocalityWatch& watch() const { return watch_; }
    const TapeWatch& tapes() const { return tapes_; }

private:
    Task<Started<void>> open_locality(Locality* locality);
    Task<Started<void>> open_names();
    Task<void> open_disks();
    Task<bool> close_disks(Instant deadline);
    Task<void> ask_for_time();
    Task<void> look_after_disks();
    Task<Started<void>> listen();
    std::vector<fabric::Address> listen_addresses() const;
    LocalityOptions locality_options(std::uint32_t index);
    void warn_of_transport();

    const NodeWorld world_;
    const NodeOptions options_;
    NodeLife life_;
    NodeEpochs epochs_;
    std::vector<std::unique_ptr<Locality>> localities_;
    LocalityOrders orders_;
    std::vector<fabric::Address> addresses_;
    NodeAccess access_;
    lrs::PolicyNode policies_;
    LrsChanges lrs_;
    IoSchedChanges io_sched_;
    RuleWarnings rule_warnings_;
    ClassLedger class_ledger_;
    LocalityUpdates updates_;
    NodeDisks disks_;
    NodeLayout layout_;
    std::unique_ptr<objects::NameParts> names_;  // Null without disks.
    std::uint64_t incarnation_ = 0;
    std::atomic<bool> opened_ = false;
    fabric::Transport* transport_ = nullptr;
    std::unique_ptr<Listener> listener_;
    std::vector<std::string> warnings_;
    DeviceWarnings device_warnings_;
    SpaceWatch space_;
    MissingDisks missing_;
    TapeWatch tapes_;
    LocalityWatch watch_;
    LocalityQuestions questions_;
    DiskChecks checks_;
    core::Gate background_;
    core::CancelSource disks_open_;
    core::CancelSource closing_;
    core::WaitQueue drained_;
    ChangeTurn turn_;
    NodeBackup backup_;
    DeviceChanges device_changes_;
    DeviceRequests device_requests_;
    NodeReload reload_;
    LeftRunning left_;  // When the drain ended.
    bool left_on_tape_ = false;
    std::vector<bool> registered_;  // By locality: whether the kernel has its buffers registered.
};

}  // namespace fopd::daemon

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/entropy.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/metrics.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "daemon/access.h"
#include "daemon/class_ledger.h"
#include "daemon/configuration.h"
#include "daemon/device_changes.h"
#include "daemon/listener.h"
#include "daemon/locality.h"
#include "daemon/name_parts.h"
#include "daemon/node_disks.h"
#include "daemon/service_manager.h"
#include "daemon/start_problem.h"
#include "daemon/store_backup.h"
#include "store/volume.h"

namespace fopd::daemon {

enum class NodeState : std::uint8_t {
    kStarting,
    kReady,
    kDraining,  // No new work; what runs may end.
    kDrained,   // Nothing runs any more; waiting to be stopped.
    kStopping,
    kStopped,
};
const char* to_string(NodeState state);

// What a node is given of the world it lives in. All of it outlives the node.
struct NodeWorld {
    core::Reactor& control;  // Where the node's own life happens; not a locality.
    std::vector<core::Reactor*> localities;
    const core::Clock& clock;
    core::Entropy& entropy;
    core::EventSink& events;
    ServiceManager& manager;
    Configuration& configuration;
    // Where the disks of the configuration are; null when it has none.
    DiskBay* bay = nullptr;
    // Who the node is to its disks.
    devices::NodeId id{};
    // The transport for a scheme of fabric.listen; null when there is none.
    std::function<fabric::Transport*(std::string_view scheme)> transport;
    // Reads who may do what, as this configuration says.
    std::function<Started<AccessPtr>(const config::Snapshot&)> load_access;
    // Puts settings into force that a reload has changed.
    std::function<void()> apply_settings;
};

struct NodeOptions {
    // Whether unregistered buffers are good enough; a production node refuses to start with them.
    enum class Buffers : std::uint8_t { kRegistered, kAny };
    Buffers buffers = Buffers::kRegistered;
    // In place of fabric.listen.
    std::optional<std::vector<fabric::Address>> listen{};
    store::SweepOptions sweep = {};
};

class Order;
class Pulse;
class Update;

// The daemon without the process around it: starts the localities, watches them, reloads, drains
// and stops. The same code runs as a systemd service and by the dozen in the simulated world.
// Everything happens on the control reactor.
class Node {
public:
    Node(NodeWorld world, NodeOptions options);
    ~Node();
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    // Once. Ready when it returns without a problem; a stop() meanwhile ends it early and well.
    Task<Started<void>> start();

    // What a drain could not wait for.
    struct Left {
        std::uint64_t running = 0;     // Operations that outlasted the drain timeout.
        std::uint64_t localities = 0;  // That have not even answered.

        bool nothing() const { return running == 0 && localities == 0; }
    };
    // Lets no new work in and waits until what runs has ended or the drain timeout is over. Whoever
    // asks while it drains waits for the same end.
    Task<Left> drain();

    // Drains, and gives back what start() took. Once. False when a locality does not answer: what
    // it holds cannot be given back then. After it, and after the localities' loops have ended,
    // the node may be destroyed.
    Task<bool> stop();

    // Reads the configuration again and puts into force what can change at run time: disks that are
    // new in it come, disks that it does not have any more go. Refused as busy unless the node is
    // ready.
    struct Reloaded : Configuration::Reloaded {
        std::vector<DeviceOutcome> devices;
    };
    using ReloadResult = std::expected<Reloaded, Configuration::Refused>;
    Task<ReloadResult> reload();

    // Opens a disk that the configuration names, as its source says now, and that is not open.
    // What is wrong with the source, or keeps the disk out, is in the refusal.
    using DeviceResult = std::expected<DeviceOutcome, Configuration::Refused>;
    Task<DeviceResult> add_device(std::string name);
    // Takes a disk out on which there is nothing. It comes back by add_device(), or with the next
    // start, if the configuration names it.
    Task<DeviceResult> remove_device(std::string name);
    // Forgets what was on a disk that will not come back, and the disk. One of the two says which:
    // what the node calls it, or its slot.
    struct LostDevice {
        std::string name = {};
        std::optional<store::Slot> slot = {};
        bool is_sure = false;
    };
    Task<DeviceResult> forget_device(LostDevice which);
    // Whether the configuration names it, as its source says now.
    bool is_configured(const std::string& device) const;

    // Other settings of the request scheduler, until the next reload or restart: which keys have
    // changed. Refused as busy unless the node is ready.
    using LrsResult = std::expected<std::vector<std::string>, Configuration::Refused>;
    LrsResult set_policy(std::string_view policy, std::span<const lrs::NamedValue> values,
                         std::optional<std::string_view> rules = std::nullopt);
    // The rules of the policy that decides, or of tbf where that one has none.
    lrs::OrderedRulesPtr rules();
    LrsResult edit_rules(const lrs::RuleEdit& edit);
    // The name of the class such a request would be of.
    std::string class_of(const lrs::RequestAttributes& request);
    // Its pools and slots, as they are now; null before it has any.
    const reqh::StoreLayoutPtr& layout() const { return layout_; }

    // A stop() follows: a start() under way does not take more.
    void request_stop() {
        stop_requested_ = true;
        if (backup_ != nullptr) backup_->give_up();
    }

    Instant now() const { return world_.control.now(); }
    NodeState state() const { return state_; }
    // From any thread: the localities have all they will have.
    bool opened() const { return opened_.load(std::memory_order_acquire); }
    // Its localities can be asked.
    bool serving() const {
        return state_ == NodeState::kReady || state_ == NodeState::kDraining ||
               state_ == NodeState::kDrained;
    }
    bool accepts_work() const { return state_ == NodeState::kReady; }
    const std::vector<std::unique_ptr<Locality>>& localities() const { return localities_; }
    std::vector<std::unique_ptr<Locality>>& localities() { return localities_; }
    Instant created_at() const { return created_at_; }
    Instant ready_at() const { return ready_at_; }
    bool buffers_registered(std::size_t locality) const { return registered_[locality]; }
    std::vector<std::string> warnings() const;
    // Where clients may connect.
    const std::vector<fabric::Address>& addresses() const { return addresses_; }
    // Those of the configuration, also what could not be used of them.
    const NodeDisks& disks() const { return disks_; }

    // These ask the localities, and wait for their answers.
    struct LocalSession {
        std::uint32_t locality;
        fabric::SessionInfo info;
    };
    Task<std::vector<LocalSession>> sessions();
    // What the request scheduler's classes have seen; at most `count_max`, and one of the others.
    Task<std::vector<lrs::ClassFigures>> class_figures(std::size_t count_max);
    // What runs, the oldest first.
    Task<std::vector<reqh::FopRecord>> running();
    Task<std::optional<reqh::FopRecord>> trace(reqh::FopId id);
    // Begins, or ends, looking through all data of a disk. kNotFound: there is no such disk, or it
    // is of no use; kBusy: that is under way.
    Task<Result<void>> scrub(std::string disk, bool begin);
    // The same for holding together what a disk says of itself; and what came of it.
    Task<Result<void>> check_store(std::string disk, bool begin);
    Task<reqh::CheckStatus> store_check(std::string disk);
    // Writes down what the node keeps beside its disks. What is in the disks' logs and not yet in
    // their indexes is not in it. One at a time, and no disk comes or goes meanwhile.
    Task<Result<void>> back_up(StoreBackup* backup);
    const devices::NodeId& id() const { return world_.id; }
    // From any thread.
    const ClassLedger& class_ledger() const { return class_ledger_; }
    // How long ago the locality last answered; what is beyond kStuckAfter counts as stuck.
    Duration silent_for(std::size_t locality) const;
    static constexpr Duration kStuckAfter = 5s;

private:
    // What changes the node's disks, or counts on them: one at a time, each waits for the one
    // before.
    Task<std::expected<void, Configuration::Refused>> begin_change();
    void end_change();
    // False: one that is under way has not ended by the deadline.
    Task<bool> wait_for_change(Instant deadline);
    std::expected<void, Configuration::Refused> check_ready() const;
    ReloadResult reload_settings(std::vector<devices::DeviceSettings>* wanted);
    std::vector<std::string> check_open_disks(const config::Snapshot& next) const;
    using DeviceList = std::vector<devices::DeviceSettings>;
    struct DiskPlan {
        DeviceList before;
        DeviceList wanted;
    };
    Task<std::vector<DeviceOutcome>> follow(DiskPlan* plan);
    Task<DeviceOutcome> open_disk(devices::DeviceSettings settings);
    Task<DeviceOutcome> let_disk_go(std::string name, DeviceChanges::Keep keep);
    Task<DeviceResult> add_configured(std::string name);
    Task<DeviceResult> remove_present(std::string name);
    Task<DeviceOutcome> forget_lost(LostDevice which);
    std::string why_not_lost(const LostDevice& which) const;
    std::string why_not_openable(const devices::DeviceSettings& settings) const;
    void note_outcome(const DeviceOutcome& outcome);
    void note_disk(const std::string& name);
    Task<void> publish_layout();
    Task<Result<void>> back_up_all(StoreBackup* backup);
    Task<Result<void>> back_up_disks(StoreBackup* backup);
    Task<Result<void>> back_up_names(StoreBackup* backup);
    Task<Started<void>> open_locality(Locality* locality);
    Task<Started<void>> open_names();
    Task<void> open_disks();
    Task<void> serve_objects();
    Task<bool> close_disks(Instant deadline);
    Task<void> ask_for_time();
    Task<Started<void>> listen();
    std::vector<fabric::Address> listen_addresses() const;
    // Of the snapshot in use.
    const std::vector<devices::PoolSettings>& pools() const;
    const std::vector<devices::DeviceSettings>& devices() const;
    LiveSettings live_settings();
    LocalityOptions locality_options(std::uint32_t index);
    void apply_live_settings();
    // What is to be said about who may connect; empty: nothing.
    std::string_view access_warning() const;
    void warn_of_access();
    const lrs::LrsSettings& lrs_settings() const;
    std::vector<std::string> use_lrs(lrs::LrsSettings settings);
    // Sends every locality the same order and waits for the answers. Those that have none to give
    // by `deadline` keep theirs.
    Task<Left> order_all(Task<std::uint64_t> (*what)(Locality*, Instant), Instant argument,
                         Instant deadline);
    Task<void> watch();
    void look_at_pulses();
    void enter(NodeState state);

    NodeWorld world_;
    const NodeOptions options_;
    NodeState state_ = NodeState::kStarting;
    const Instant created_at_;
    Instant ready_at_ = kNever;
    std::vector<std::unique_ptr<Locality>> localities_;
    std::vector<std::unique_ptr<Pulse>> pulses_;
    std::vector<std::unique_ptr<Order>> orders_;
    std::vector<std::unique_ptr<Update>> updates_;
    lrs::PolicyNode policies_;
    ClassLedger class_ledger_;
    NodeDisks disks_;
    std::unique_ptr<NameParts> names_;  // Null without disks.
    reqh::StoreLayoutPtr layout_;       // The same.
    std::uint64_t incarnation_ = 0;
    std::atomic<bool> opened_ = false;
    AccessPtr access_;
    fabric::Transport* transport_ = nullptr;
    std::vector<fabric::Address> addresses_;
    std::unique_ptr<Listener> listener_;
    std::vector<std::string> warnings_;
    std::map<std::string, std::string> device_warnings_;  // By their names.
    core::Gate background_;
    core::CancelSource disks_open_;
    core::CancelSource stop_watching_;
    core::WaitQueue drained_;
    core::WaitQueue answered_;
    core::WaitQueue change_ended_;
    bool changing_ = false;
    DeviceChanges device_changes_;
    Left left_;
    bool stop_requested_ = false;
    StoreBackup* backup_ = nullptr;  // While one is made.
    std::vector<bool> registered_;   // For each locality: its buffers, with the kernel.
};

}  // namespace fopd::daemon

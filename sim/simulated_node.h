#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/events.h"
#include "core/virtual_world.h"
#include "daemon/configuration.h"
#include "daemon/node.h"
#include "daemon/service_manager.h"
#include "fabric/transport.h"
#include "fop/key.h"
#include "fop/protection.h"
#include "sim/simulated_disks.h"
#include "sim/simulated_epoch_stores.h"
#include "sim/simulated_library.h"

namespace fopd::sim {

// Counts a node's events by name and feeds them to the trace.
class RecordedEvents final : public core::EventSink {
public:
    // Called for every event as it happens.
    using Observer = std::function<void(std::string_view name, std::span<const core::Field>)>;

    explicit RecordedEvents(core::VirtualWorld& world, Observer observer = {})
        : world_(world), observer_(std::move(observer)) {}
    void emit(core::Level level, std::string_view name,
              std::span<const core::Field> fields) override;
    bool wants(core::Level) const override { return true; }

    std::uint64_t count(std::string_view name) const;
    // Names of error-level events, for scenarios that must not have any.
    const std::vector<std::string>& errors() const { return errors_; }

private:
    core::VirtualWorld& world_;
    const Observer observer_;
    std::map<std::string, std::uint64_t, std::less<>> counts_;
    std::vector<std::string> errors_;
};

// Plays the part of systemd: records the notifications of a node, and whether the node fed the
// watchdog in time.
class SimulatedManager final : public daemon::ServiceManager {
public:
    SimulatedManager(core::VirtualWorld& world, Duration watchdog)
        : world_(world), watchdog_(watchdog) {}

    void ready() override {
        ++ready_count_;
        fed_at_ = world_.now();
    }
    void reloading() override { ++reloading_count_; }
    void stopping() override { ++stopping_count_; }
    void extend_timeout(Duration) override { ++extended_count_; }
    void status(std::string_view line) override { status_ = line; }
    void feed_watchdog() override;
    Duration watchdog_timeout() const override { return watchdog_; }

    std::uint64_t ready_count() const { return ready_count_; }
    std::uint64_t reloading_count() const { return reloading_count_; }
    std::uint64_t stopping_count() const { return stopping_count_; }
    std::uint64_t fed_count() const { return fed_count_; }
    // How often the node asked for more time.
    std::uint64_t extended_count() const { return extended_count_; }
    // The status text that `systemctl status` would show.
    const std::string& status() const { return status_; }
    // The longest time without a feed, from the first ready() since begin_life() until now.
    Duration longest_hunger() const;
    void forget_hunger();
    // Called when the node is started.
    void begin_life();

private:
    core::VirtualWorld& world_;
    const Duration watchdog_;
    std::uint64_t ready_count_ = 0;
    std::uint64_t reloading_count_ = 0;
    std::uint64_t stopping_count_ = 0;
    std::uint64_t fed_count_ = 0;
    std::uint64_t extended_count_ = 0;
    std::string status_;
    Instant fed_at_ = kNever;
    Duration longest_hunger_{0};
};

// The clock of a machine, whose wall clock can jump.
class JumpingClock final : public core::Clock {
public:
    explicit JumpingClock(const core::Clock& steady) : steady_(steady) {}

    Instant now() const override { return steady_.now(); }
    WallTime wall() const override { return {.unix_ns = steady_.wall().unix_ns + ahead_.count()}; }
    void jump(Duration by) { ahead_ += by; }

private:
    const core::Clock& steady_;
    Duration ahead_{};
};

struct SimulatedNodeOptions {
    std::string name = "node";
    std::uint32_t index = 0;  // The number of the node in its cluster.
    std::uint32_t localities = 2;
    Duration watchdog = 10s;
    Duration drain_timeout = 30s;
    // The network on which the node listens; null: none. Outlives the node.
    fabric::Transport* network = nullptr;
    std::string listen = {};  // Empty: mem://NAME:1.
    fop::Protection protection = fop::Protection::kSeal;
    // The principals file; empty: clients need no authentication.
    std::string principals = {};
    // The node reports a fop that takes longer as slow.
    Duration slow_fop = 500ms;
    std::vector<SimulatedDiskOptions> disks = {};
    Duration upload_timeout = 1h;
    std::uint64_t overlay_bytes = 64UL << 20;  // Per disk.
    store::SweepOptions sweep = {};
    // The tape library, and its pools; without a pool the node has no library.
    SimulatedLibraryOptions library = {};
    std::optional<library::TapePoolOptions> tape_pool = {};
    // Settings of io_sched.tape as a YAML flow mapping, e.g. "{reader: fifo}"; empty: defaults.
    std::string tape_io = {};
    // Settings of eh in the same form. For `kind: peers` peer_key is needed, too.
    std::string epochs = {};
    std::optional<fop::Key> peer_key = {};
    // Where the nodes of the cluster keep their view; null: in a file of the root. Outlives the
    // node.
    SimulatedViewRegister* views = nullptr;
    // Observes the epochs with peers; null: no observer. Outlives the node.
    eh::peers::EpochObserver* epoch_observer = nullptr;
    RecordedEvents::Observer observer = {};
};

// One daemon of the simulated world: the real Node, on reactors of the world, with a configuration
// text. It can be started, killed and started again.
class SimulatedNode {
public:
    SimulatedNode(core::VirtualWorld& world, SimulatedNodeOptions options);
    ~SimulatedNode();
    SimulatedNode(const SimulatedNode&) = delete;
    SimulatedNode& operator=(const SimulatedNode&) = delete;

    bool running() const { return process_ != nullptr; }
    // Begins a life: the node starts in the background. REQUIRES: not running.
    void start();
    // SIGTERM: the node drains and stops in the background. After its end bury() destroys it.
    void terminate();
    // kill -9: ends the node at once, whatever its coroutines are doing.
    void crash();
    // Kills the node like crash(), and drops the data that its disks had not made durable. If the
    // node is not running, only drops the data.
    void lose_power();

    // fopctl drain: the node accepts no new work, and stays.
    void drain();
    // These run in the background, and pass their result to `ended`. REQUIRES: running.
    using ReloadEnded = std::function<void(const daemon::NodeReload::Outcome&)>;
    void reload(ReloadEnded ended);
    using DeviceEnded = std::function<void(const daemon::DeviceRequests::Outcome&)>;
    void add_device(const std::string& device, DeviceEnded ended);
    void remove_device(const std::string& device, DeviceEnded ended);
    void forget_device(daemon::DeviceRequests::LostDevice device, DeviceEnded ended);

    const std::string& name() const { return options_.name; }
    std::uint32_t index() const { return options_.index; }
    daemon::Node& node();
    daemon::Configuration& configuration();
    core::Reactor& control();
    core::Reactor& locality(std::uint32_t index);
    RecordedEvents& events() { return events_; }
    SimulatedManager& manager() { return manager_; }
    SimulatedDisks& disks() { return disks_; }
    SimulatedLibrary& library() { return library_; }
    EpochFiles& epoch_files() { return epoch_files_; }
    // Moves the node's wall clock forward, or back if `by` is negative. Restarts do not undo it.
    void jump_clock(Duration by) { clock_.jump(by); }
    // Sets the configuration for the next start or reload.
    void set_configuration(std::string text) { configuration_text_ = std::move(text); }
    std::string good_configuration() const;
    bool configuration_is_good() const { return configuration_text_ == good_configuration(); }
    // Called between two steps of the world: destroys a process that has ended.
    void bury();
    // How many times the node was started.
    std::uint64_t life_count() const { return life_count_; }
    bool start_failed() const { return start_failed_; }

private:
    struct Process;

    Task<void> live(Process* process);
    std::string fabric_configuration() const;
    std::string disks_and_library() const;
    daemon::NodeOptions node_options() const;
    daemon::Started<daemon::AccessPtr> load_access() const;
    static Task<void> drain_node(daemon::Node* node);
    static Task<void> reload_node(daemon::Node* node, ReloadEnded ended);
    static Task<void> add_to_node(daemon::Node* node, std::string device, DeviceEnded ended);
    static Task<void> remove_from_node(daemon::Node* node, std::string device, DeviceEnded ended);
    static Task<void> forget_on_node(daemon::Node* node, daemon::DeviceRequests::LostDevice device,
                                     DeviceEnded ended);

    core::VirtualWorld& world_;
    const SimulatedNodeOptions options_;
    const config::Schema schema_;
    JumpingClock clock_;
    RecordedEvents events_;
    SimulatedManager manager_;
    SimulatedDisks disks_;
    SimulatedLibrary library_;
    EpochFiles epoch_files_;
    std::string configuration_text_;
    std::unique_ptr<Process> process_;
    std::uint64_t life_count_ = 0;
    bool start_failed_ = false;
};

}  // namespace fopd::sim

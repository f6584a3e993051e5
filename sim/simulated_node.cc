#include "sim/simulated_node.h"

#include "config/units.h"
#include "core/ensure.h"
#include "core/wait_queue.h"
#include "daemon/settings.h"

namespace fopd::sim {

void RecordedEvents::emit(core::Level level, std::string_view name,
                          std::span<const core::Field> fields) {
    for (const char each : name) world_.trace(static_cast<unsigned char>(each));
    world_.trace(fields.size());
    const auto counted = counts_.find(name);
    if (counted == counts_.end()) {
        counts_.emplace(name, 1);
    } else {
        ++counted->second;
    }
    if (level == core::Level::kError) errors_.emplace_back(name);
    if (observer_) observer_(name, fields);
}

std::uint64_t RecordedEvents::count(std::string_view name) const {
    const auto found = counts_.find(name);
    return found == counts_.end() ? 0 : found->second;
}

void SimulatedManager::feed_watchdog() {
    ++fed_count_;
    longest_hunger_ = longest_hunger();
    fed_at_ = world_.now();
}

Duration SimulatedManager::longest_hunger() const {
    if (fed_at_ == kNever) return longest_hunger_;
    return std::max(longest_hunger_, Duration(world_.now() - fed_at_));
}

void SimulatedManager::forget_hunger() {
    longest_hunger_ = Duration{0};
    if (fed_at_ != kNever) fed_at_ = world_.now();
}

void SimulatedManager::begin_life() {
    longest_hunger_ = Duration{0};
    fed_at_ = kNever;
    status_.clear();
}

// The state that a kill -9 destroys.
struct SimulatedNode::Process {
    std::unique_ptr<daemon::Configuration> configuration;
    core::Gate gate;
    std::unique_ptr<core::Reactor> control;
    std::vector<std::unique_ptr<core::Reactor>> localities;
    std::unique_ptr<core::WaitQueue> told_to_stop;
    std::unique_ptr<core::SeededEntropy> entropy;
    std::unique_ptr<SimulatedEpochStores> epoch_stores;
    std::unique_ptr<daemon::Node> node;
    bool stopping = false;
    bool ended = false;
    bool clean = false;
};

SimulatedNode::SimulatedNode(core::VirtualWorld& world, SimulatedNodeOptions options)
    : world_(world),
      options_(std::move(options)),
      schema_(daemon::make_schema()),
      clock_(world.clock()),
      events_(world, options_.observer),
      manager_(world, options_.watchdog),
      disks_(core::mix(world.seed(), options_.index), options_.disks),
      library_(core::mix(world.seed(), ~std::uint64_t{options_.index}), options_.library),
      configuration_text_(good_configuration()) {}

SimulatedNode::~SimulatedNode() {
    if (running()) crash();
}

std::string SimulatedNode::good_configuration() const {
    return "node: { name: " + options_.name +
           ", drain_timeout: " + config::format_duration(options_.drain_timeout) + " }\n" +
           "localities: { cores: " + std::to_string(options_.localities) + ", buffers: 256KiB }\n" +
           "log: { slow_fop: " + config::format_duration(options_.slow_fop) + " }\n" +
           fabric_configuration() +
           "store: { upload_timeout: " + config::format_duration(options_.upload_timeout) +
           ", overlay: " + std::to_string(options_.overlay_bytes >> 20) + "MiB }\n" +
           (options_.epochs.empty() ? "" : "eh: { " + options_.epochs + " }\n") +
           (options_.peer_key ? "auth: { peer_key: /sim/peer.key }\n" : "") + disks_and_library();
}

std::string SimulatedNode::disks_and_library() const {
    if (!options_.tape_pool) return disks_.configuration({});
    const library::TapePoolOptions& pool = *options_.tape_pool;
    return disks_.configuration("  - { name: " + pool.name +
                                ", family: tape, staging: " + pool.staging +
                                ", copies: " + std::to_string(pool.copies) + " }\n") +
           "libraries:\n  - { name: library, path: /sim/library, drives: " +
           std::to_string(options_.library.drives) + ", pool: " + pool.name + " }\n" +
           (options_.tape_io.empty() ? "" : "io_sched: { tape: " + options_.tape_io + " }\n");
}

std::string SimulatedNode::fabric_configuration() const {
    if (options_.network == nullptr) return "fabric: { listen: [] }\n";
    const std::string listen =
        options_.listen.empty() ? "mem://" + options_.name + ":1" : options_.listen;
    const bool encrypts = options_.protection == fop::Protection::kEncrypt;
    return "fabric: { listen: [\"" + listen + "\"], protect: " + (encrypts ? "encrypt" : "seal") +
           " }\n";
}

void SimulatedNode::start() {
    ENSURE(!running());
    manager_.begin_life();
    auto load = [this] { return schema_.load_text(configuration_text_, options_.name + ".yaml"); };
    auto configuration = daemon::Configuration::open(options_.name + ".yaml", load);
    if (!configuration) {
        start_failed_ = true;
        return;
    }
    ++life_count_;
    disks_.begin_life();
    library_.begin_life(disks_.power());
    process_ = std::make_unique<Process>();
    Process& process = *process_;
    process.configuration = std::move(*configuration);
    process.control = world_.make_reactor();
    std::vector<core::Reactor*> localities;
    for (std::uint32_t i = 0; i < options_.localities; ++i) {
        process.localities.push_back(world_.make_reactor());
        localities.push_back(process.localities.back().get());
    }
    process.entropy = std::make_unique<core::SeededEntropy>(world_.random().next());
    process.told_to_stop = std::make_unique<core::WaitQueue>(*process.control);
    process.epoch_stores = std::make_unique<SimulatedEpochStores>(
        *localities.front(),
        core::Random(core::mix(core::mix(world_.seed(), options_.index), life_count_)),
        epoch_files_, options_.views);
    process.node = std::make_unique<daemon::Node>(
        daemon::NodeWorld{.control = *process.control,
                          .localities = localities,
                          .clock = clock_,
                          .entropy = *process.entropy,
                          .events = events_,
                          .manager = manager_,
                          .configuration = *process.configuration,
                          .bay = &disks_,
                          .library_bay = &library_,
                          .epoch_stores = process.epoch_stores.get(),
                          .epoch_observer = options_.epoch_observer,
                          .id = disks_.node_id(),
                          .transport = [this](std::string_view) { return options_.network; },
                          .load_access = [this](const config::Snapshot&) { return load_access(); },
                          .apply_settings = [] {}},
        node_options());
    process.control->spawn(process.gate, live(&process));
}

daemon::NodeOptions SimulatedNode::node_options() const {
    daemon::NodeOptions options{.sweep = options_.sweep};
    if (options_.tape_pool) {
        options.library = {.name = "library", .pools = {*options_.tape_pool}};
    }
    return options;
}

daemon::Started<daemon::AccessPtr> SimulatedNode::load_access() const {
    return daemon::make_access(
        {.principals_file = options_.name + "-principals.yaml",
         .principals = options_.principals,
         .peer_keys = options_.peer_key ? std::vector{*options_.peer_key} : std::vector<fop::Key>{},
         .issuer = std::nullopt,
         .mode = options_.principals.empty() ? daemon::AuthSettings::Mode::kNone
                                             : daemon::AuthSettings::Mode::kRequired});
}

Task<void> SimulatedNode::live(Process* process) {
    const auto started = co_await process->node->start();
    if (!started) start_failed_ = true;
    while (started && !process->stopping) {
        // No deadline: runs until it is told to stop.
        [[maybe_unused]] const auto told = co_await process->told_to_stop->wait({});
    }
    const bool stopped = co_await process->node->stop();
    process->clean = stopped && !process->node->left_on_tape() && !process->node->left_in_file();
    process->ended = true;
}

void SimulatedNode::terminate() {
    if (!running() || process_->stopping) return;
    process_->stopping = true;
    process_->node->request_stop();
    process_->told_to_stop->wake_all();
}

void SimulatedNode::drain() {
    if (!running() || process_->gate.closed()) return;
    process_->control->spawn(process_->gate, drain_node(process_->node.get()));
}

Task<void> SimulatedNode::drain_node(daemon::Node* node) {
    [[maybe_unused]] const auto left = co_await node->drain();
}

void SimulatedNode::reload(ReloadEnded ended) {
    process_->control->spawn(process_->gate, reload_node(process_->node.get(), std::move(ended)));
}

Task<void> SimulatedNode::reload_node(daemon::Node* node, ReloadEnded ended) {
    const auto reloaded = co_await node->reload();
    ended(reloaded);
}

void SimulatedNode::add_device(const std::string& device, DeviceEnded ended) {
    std::string name = device;
    process_->control->spawn(process_->gate,
                             add_to_node(process_->node.get(), std::move(name), std::move(ended)));
}

Task<void> SimulatedNode::add_to_node(daemon::Node* node, std::string device, DeviceEnded ended) {
    const auto added = co_await node->devices().add(std::move(device));
    ended(added);
}

void SimulatedNode::remove_device(const std::string& device, DeviceEnded ended) {
    std::string name = device;
    process_->control->spawn(
        process_->gate, remove_from_node(process_->node.get(), std::move(name), std::move(ended)));
}

Task<void> SimulatedNode::remove_from_node(daemon::Node* node, std::string device,
                                           DeviceEnded ended) {
    const auto removed = co_await node->devices().remove(std::move(device));
    ended(removed);
}

void SimulatedNode::forget_device(daemon::DeviceRequests::LostDevice device, DeviceEnded ended) {
    process_->control->spawn(
        process_->gate, forget_on_node(process_->node.get(), std::move(device), std::move(ended)));
}

Task<void> SimulatedNode::forget_on_node(daemon::Node* node,
                                         daemon::DeviceRequests::LostDevice device,
                                         DeviceEnded ended) {
    const auto forgotten = co_await node->devices().forget(std::move(device));
    ended(forgotten);
}

void SimulatedNode::crash() {
    if (!running()) return;
    process_->control->drop_coroutines();
    for (const auto& locality : process_->localities) locality->drop_coroutines();
    process_.reset();
}

void SimulatedNode::lose_power() {
    if (running()) disks_.power().cut();
    crash();
    disks_.crash();
    library_.crash();
}

void SimulatedNode::bury() {
    if (!running() || !process_->ended || process_->gate.count() > 0) return;
    // A process that could not stop cleanly exits as it is, which is like a kill.
    if (process_->clean) {
        process_.reset();
    } else {
        crash();
    }
}

daemon::Node& SimulatedNode::node() {
    ENSURE(running());
    return *process_->node;
}

daemon::Configuration& SimulatedNode::configuration() {
    ENSURE(running());
    return *process_->configuration;
}

core::Reactor& SimulatedNode::control() {
    ENSURE(running());
    return *process_->control;
}

core::Reactor& SimulatedNode::locality(std::uint32_t index) {
    ENSURE(running());
    return *process_->localities[index];
}

}  // namespace fopd::sim

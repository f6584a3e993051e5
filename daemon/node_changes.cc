// Changes of a node while it runs: its settings and its disks.
#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/node.h"

namespace fopd::daemon {

namespace {

using DeviceList = std::vector<devices::DeviceSettings>;

const devices::DeviceSettings* find_device(const DeviceList& list, const std::string& name) {
    const auto found = std::ranges::find(list, name, &devices::DeviceSettings::name);
    return found == list.end() ? nullptr : &*found;
}

// The key of the first difference; empty: none.
std::string difference(const devices::DeviceSettings& one, const devices::DeviceSettings& other) {
    if (one.path != other.path) return "path";
    if (one.size_bytes != other.size_bytes) return "size";
    if (one.thin != other.thin) return "thin";
    if (one.pool != other.pool) return "pool";
    return {};
}

bool is_open(const NodeDisk* disk) {
    return disk != nullptr && disk->stage() != DiskStage::kGivenUp;
}

const char* event_of_refusal(DeviceOutcome::Kind kind) {
    using Kind = DeviceOutcome::Kind;
    if (kind == Kind::kNotAdded) return "daemon.device_not_added";
    return kind == Kind::kNotRemoved ? "daemon.device_not_removed" : "daemon.device_not_forgotten";
}

}  // namespace

// -- reload --

Task<Node::ReloadResult> Node::reload() {
    const auto turn = co_await turn_.begin();
    if (!turn) co_return std::unexpected(turn.error());
    world_.manager.reloading();
    DiskPlan plan{.before = devices(), .wanted = {}};
    auto reloaded = reload_settings(&plan.wanted);
    if (reloaded) reloaded->devices = co_await follow(&plan);
    world_.manager.ready();
    turn_.end();
    co_return std::move(reloaded);
}

Node::ReloadResult Node::reload_settings(DeviceList* wanted) {
    AccessPtr access;
    const auto check = [this, wanted, &access](const config::Snapshot& next) {
        // A bad access file that the configuration names changes nothing either.
        auto loaded = access_.load(next);
        if (!loaded) return std::vector{loaded.error().message};
        access = *std::move(loaded);
        *wanted = next.get<DeviceList>();
        return check_open_disks(next);
    };
    auto reloaded = world_.configuration.reload(check);
    if (!reloaded) {
        for (const std::string& problem : reloaded.error().problems) {
            emit_each(world_.events, core::Level::kError, "daemon.config_refused",
                      {{"problem", std::string_view(problem)}});
        }
        return std::unexpected(std::move(reloaded.error()));
    }
    for (std::string& key : changed_files(*access_.current(), *access)) {
        // The key is listed already if it also names another file now.
        const bool is_there = std::ranges::find(reloaded->changed, key) != reloaded->changed.end();
        if (!is_there) reloaded->changed.push_back(std::move(key));
    }
    access_.use(std::move(access));
    world_.apply_settings();
    updates_.send();
    access_.report();
    layout_.apply_quotas();
    for (const std::string& key : reloaded->changed) {
        emit_each(world_.events, core::Level::kInfo, "daemon.config_changed",
                  {{"key", std::string_view(key)}});
    }
    for (const std::string& key : reloaded->needs_restart) {
        emit_each(world_.events, core::Level::kWarn, "daemon.config_needs_restart",
                  {{"key", std::string_view(key)}});
    }
    emit_each(world_.events, core::Level::kInfo, "daemon.reloaded",
              {{"config_hash", std::string_view(reloaded->hash)},
               {"changed", static_cast<std::uint64_t>(reloaded->changed.size())}});
    Reloaded all;
    static_cast<Configuration::Reloaded&>(all) = *std::move(reloaded);
    return all;
}

// No setting of an open disk can change.
std::vector<std::string> Node::check_open_disks(const config::Snapshot& next) const {
    std::vector<std::string> problems;
    for (const auto& disk : disks_.all()) {
        if (!is_open(disk.get())) continue;
        const devices::DeviceSettings& open = disk->settings();
        const auto* const wanted = find_device(next.get<DeviceList>(), open.name);
        if (wanted == nullptr) continue;
        const std::string key = difference(open, *wanted);
        if (key.empty()) continue;
        problems.push_back(world_.configuration.file() + ": devices: the " + key + " of " +
                           open.name + ", which is open, has changed; that needs a restart");
    }
    return problems;
}

// Adds new disks and removes those no longer configured; a disk that was removed by hand and is
// still configured stays out.
Task<std::vector<DeviceOutcome>> Node::follow(DiskPlan* plan) {
    std::vector<DeviceOutcome> outcomes;
    std::vector<std::string> gone;
    for (const auto& disk : disks_.all()) {
        const std::string& name = disk->settings().name;
        if (find_device(plan->wanted, name) == nullptr) gone.push_back(name);
    }
    for (const DiskReport& report : disks_.reports()) {
        if (find_device(plan->wanted, report.name) == nullptr) disks_.forget(report.name);
    }
    for (const std::string& name : gone) {
        std::string which = name;
        auto outcome = co_await let_disk_go(std::move(which), DeviceChanges::Keep::kNo);
        outcomes.push_back(std::move(outcome));
    }
    for (const devices::DeviceSettings& wanted : plan->wanted) {
        if (is_open(disks_.find(wanted.name))) continue;
        const auto* const before = find_device(plan->before, wanted.name);
        if (before != nullptr && difference(*before, wanted).empty()) continue;
        devices::DeviceSettings settings = wanted;
        auto outcome = co_await open_disk(std::move(settings));
        outcomes.push_back(std::move(outcome));
    }
    co_return outcomes;
}

// -- a disk --

// Why opening cannot be attempted; empty if it can.
std::string Node::why_not_openable(const devices::DeviceSettings& settings) const {
    if (names_ == nullptr) return "the node was started without disks: its first needs a restart";
    const auto pool = std::ranges::find(pools(), settings.pool, &devices::PoolSettings::name);
    if (pool == pools().end()) return "its pool " + settings.pool + " is new: that needs a restart";
    for (const auto& disk : disks_.all()) {
        if (!is_open(disk.get()) || disk->settings().path != settings.path) continue;
        return settings.path + " is open as " + disk->settings().name;
    }
    return {};
}

Task<DeviceOutcome> Node::open_disk(devices::DeviceSettings settings) {
    const std::string name = settings.name;
    DeviceOutcome outcome{.device = name,
                          .kind = DeviceOutcome::Kind::kNotAdded,
                          .words = why_not_openable(settings)};
    if (outcome.words.empty()) {
        outcome = co_await device_changes_.add(std::move(settings));
        note_disk(name);
    }
    note_outcome(outcome);
    co_return std::move(outcome);
}

Task<DeviceOutcome> Node::let_disk_go(std::string name, DeviceChanges::Keep keep) {
    std::string which = name;
    auto outcome = co_await device_changes_.remove(std::move(which), keep);
    note_disk(name);
    note_outcome(outcome);
    co_return std::move(outcome);
}

void Node::note_outcome(const DeviceOutcome& outcome) {
    if (outcome.done()) return;
    emit_each(world_.events, core::Level::kWarn, event_of_refusal(outcome.kind),
              {{"device", std::string_view(outcome.device)},
               {"reason", std::string_view(outcome.words)}});
}

bool Node::is_configured(const std::string& device) const {
    const auto next = world_.configuration.read();
    return next && find_device((*next)->get<DeviceList>(), device) != nullptr;
}

Task<Node::DeviceResult> Node::add_device(std::string name) {
    const auto turn = co_await turn_.begin();
    if (!turn) co_return std::unexpected(turn.error());
    auto added = co_await add_configured(std::move(name));
    turn_.end();
    co_return std::move(added);
}

Task<Node::DeviceResult> Node::add_configured(std::string name) {
    const auto next = world_.configuration.read();
    if (!next) co_return std::unexpected(next.error());
    const auto* const wanted = find_device((*next)->get<DeviceList>(), name);
    const std::string& file = world_.configuration.file();
    DeviceOutcome refusal{.device = name, .kind = DeviceOutcome::Kind::kNotAdded};
    if (wanted == nullptr) refusal.words = file + " has no device of that name";
    if (is_open(disks_.find(name))) refusal.words = "it is open already";
    if (!refusal.done()) co_return std::move(refusal);
    devices::DeviceSettings settings = *wanted;
    auto outcome = co_await open_disk(std::move(settings));
    co_return std::move(outcome);
}

Task<Node::DeviceResult> Node::remove_device(std::string name) {
    const auto turn = co_await turn_.begin();
    if (!turn) co_return std::unexpected(turn.error());
    auto removed = co_await remove_present(std::move(name));
    turn_.end();
    co_return std::move(removed);
}

Task<Node::DeviceResult> Node::remove_present(std::string name) {
    DeviceOutcome refusal{.device = name, .kind = DeviceOutcome::Kind::kNotRemoved};
    if (disks_.find(name) == nullptr) {
        refusal.words = disks_.remembers(name) ? "it was removed already"
                                               : "the node has no device of that name";
        co_return std::move(refusal);
    }
    const auto keep = is_configured(name) ? DeviceChanges::Keep::kYes : DeviceChanges::Keep::kNo;
    auto outcome = co_await let_disk_go(std::move(name), keep);
    co_return std::move(outcome);
}

Task<Node::DeviceResult> Node::forget_device(LostDevice which) {
    const auto turn = co_await turn_.begin();
    if (!turn) co_return std::unexpected(turn.error());
    auto forgotten = co_await forget_lost(std::move(which));
    turn_.end();
    co_return std::move(forgotten);
}

// A call that only asks what would be lost is not reported as a failure.
Task<DeviceOutcome> Node::forget_lost(LostDevice which) {
    if (!which.slot) which.slot = disks_.slot_of(which.name);
    if (which.name.empty()) which.name = disks_.name_of(which.slot);
    DeviceOutcome outcome{.device = which.name,
                          .kind = DeviceOutcome::Kind::kNotForgotten,
                          .words = why_not_lost(which)};
    if (!outcome.words.empty()) {
        for (const std::string& each : disks_.lost_slots()) outcome.words += "; " + each;
    } else {
        DeviceChanges::Lost lost{
            .slot = *which.slot, .device = which.name, .is_sure = which.is_sure};
        outcome = co_await device_changes_.forget(std::move(lost));
    }
    if (which.is_sure) note_outcome(outcome);
    co_return std::move(outcome);
}

// Why there is nothing to forget; empty if there is.
std::string Node::why_not_lost(const LostDevice& which) const {
    if (names_ == nullptr) return "the node was started without disks";
    if (!which.slot) return "nobody can see which slot its disk had";
    const std::string slot = "slot " + std::to_string(*which.slot);
    const SlotEntry* const entry = disks_.slots().find(*which.slot);
    if (entry == nullptr) return "no disk ever had " + slot;
    if (entry->use == SlotUse::kEmpty) return "nothing is on the disk of " + slot;
    const NodeDisk* const open = disks_.open_disk_of(*entry);
    return open == nullptr ? "" : slot + " is there: " + open->settings().name + " is open";
}

}  // namespace fopd::daemon

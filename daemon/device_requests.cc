#include "daemon/device_requests.h"

#include <algorithm>
#include <set>
#include <utility>

#include "config/problem.h"
#include "config/units.h"

namespace fopd::daemon {

namespace {

using DeviceList = std::vector<devices::DeviceSettings>;

// These are for the making of a file, and say nothing of a disk that exists.
constexpr const char* kSizeKey = "size";
constexpr const char* kThinKey = "thin";

const devices::DeviceSettings* find_device(const DeviceList& list, const std::string& name) {
    const auto found = std::ranges::find(list, name, &devices::DeviceSettings::name);
    return found == list.end() ? nullptr : &*found;
}

// The keys that differ.
std::vector<std::string> differences(const devices::DeviceSettings& one,
                                     const devices::DeviceSettings& other) {
    std::vector<std::string> keys;
    if (one.path != other.path) keys.emplace_back("path");
    if (one.size_bytes != other.size_bytes) keys.emplace_back(kSizeKey);
    if (one.thin != other.thin) keys.emplace_back(kThinKey);
    if (one.pool != other.pool) keys.emplace_back("pool");
    return keys;
}

// Why the key of an open disk cannot be changed by a reload.
std::string why_kept(const std::string& key, const devices::DeviceSettings& open) {
    std::string words = "the " + key + " of " + open.name + ", which is open, has changed; ";
    if (key == kThinKey) {
        return words +
               "only a file that is made follows it, not a disk that exists, also after a "
               "restart: set it back to " +
               (open.thin ? "true" : "false");
    }
    if (key != kSizeKey) return words + "that needs a restart";
    return words + "a disk that exists keeps its size, also after a restart: set it back to " +
           (open.size_bytes ? config::format_size(*open.size_bytes) : "none") +
           ", and for more space add another disk";
}

constexpr const char* kNoSuchDevice = "the node has no device of that name";

bool is_open(const NodeDisk* disk) {
    return disk != nullptr && disk->stage() != DiskStage::kGivenUp;
}

}  // namespace

// -- requests of an administrator --

bool DeviceRequests::is_configured(const std::string& device) const {
    const auto next = parts_.configuration.read();
    return next && find_device((*next)->get<DeviceList>(), device) != nullptr;
}

Task<DeviceRequests::Outcome> DeviceRequests::add(std::string name) {
    const auto turn = co_await parts_.turn.begin();
    if (!turn) co_return std::unexpected(turn.error());
    auto added = co_await add_configured(std::move(name));
    parts_.turn.end();
    co_return std::move(added);
}

Task<DeviceRequests::Outcome> DeviceRequests::add_configured(std::string name) {
    const auto next = parts_.configuration.read();
    if (!next) co_return std::unexpected(next.error());
    const auto* const wanted = find_device((*next)->get<DeviceList>(), name);
    const std::string& file = parts_.configuration.file();
    DeviceOutcome refusal{.device = name, .kind = DeviceOutcome::Kind::kNotAdded};
    if (is_open(parts_.disks.find(name))) {
        refusal.words = "it is open already";
    } else if (wanted == nullptr) {
        refusal.words = file + " has no device of that name";
        refusal.is_unknown = true;
    }
    if (!refusal.done()) co_return std::move(refusal);
    devices::DeviceSettings settings = *wanted;
    auto outcome = co_await open_disk(std::move(settings));
    co_return std::move(outcome);
}

Task<DeviceRequests::Outcome> DeviceRequests::remove(std::string name) {
    const auto turn = co_await parts_.turn.begin();
    if (!turn) co_return std::unexpected(turn.error());
    auto removed = co_await remove_present(std::move(name));
    parts_.turn.end();
    co_return std::move(removed);
}

Task<DeviceRequests::Outcome> DeviceRequests::remove_present(std::string name) {
    DeviceOutcome refusal{.device = name, .kind = DeviceOutcome::Kind::kNotRemoved};
    const NodeDisk* const disk = parts_.disks.find(name);
    if (!is_open(disk)) refusal.words = why_missing(name);
    if (refusal.done() && disk == nullptr) {
        refusal.is_unknown = !parts_.disks.remembers(name);
        refusal.words = refusal.is_unknown ? kNoSuchDevice : "it was removed already";
    }
    if (!refusal.done()) co_return std::move(refusal);
    const auto keep = is_configured(name) ? DeviceChanges::Keep::kYes : DeviceChanges::Keep::kNo;
    auto outcome = co_await let_disk_go(std::move(name), keep);
    co_return std::move(outcome);
}

// The remedy for a device whose disk is missing; empty if the disk is there.
std::string DeviceRequests::why_missing(const std::string& name) const {
    const std::vector<MissingSlot> missing = parts_.disks.missing_slots();
    const auto slot = std::ranges::find(missing, name, &MissingSlot::device);
    if (slot == missing.end()) return {};
    const std::string number = std::to_string(slot->slot);
    return "its disk is missing (slot " + number + " of pool " + slot->pool +
           "), and may have objects: bring it back and open it with fopctl device add " + name +
           ", or, if it is lost for good, write it off with fopctl device forget --slot " + number;
}

Task<DeviceRequests::Outcome> DeviceRequests::forget(LostDevice which) {
    const auto turn = co_await parts_.turn.begin();
    if (!turn) co_return std::unexpected(turn.error());
    auto forgotten = co_await forget_lost(std::move(which));
    parts_.turn.end();
    co_return std::move(forgotten);
}

// A call that only asks for the objects that would be lost is not reported as a failure.
Task<DeviceOutcome> DeviceRequests::forget_lost(LostDevice which) {
    const auto of_name = which.slot ? std::set<store::Slot>() : parts_.disks.slots_of(which.name);
    if (of_name.size() == 1) which.slot = *of_name.begin();
    if (which.name.empty()) which.name = parts_.disks.name_of(which.slot);
    DeviceOutcome outcome{.device = which.name,
                          .kind = DeviceOutcome::Kind::kNotForgotten,
                          .words = why_not_lost(which),
                          .is_unknown = is_unknown(which)};
    if (!outcome.words.empty()) {
        for (const std::string& each : parts_.disks.lost_slots()) outcome.words += "; " + each;
    } else {
        DeviceChanges::Lost lost{
            .slot = *which.slot, .device = which.name, .is_sure = which.is_sure};
        outcome = co_await parts_.changes.forget(std::move(lost));
    }
    if (which.is_sure) parts_.warnings.note_outcome(outcome);
    if (outcome.done()) parts_.warnings.note_disk(which.name);
    parts_.missing.note();
    co_return std::move(outcome);
}

bool DeviceRequests::is_unknown(const LostDevice& which) const {
    if (parts_.disks.empty()) return false;
    if (which.slot) return parts_.disks.slots().find(*which.slot) == nullptr;
    const std::vector<DiskReport> reports = parts_.disks.reports_of_all();
    return std::ranges::find(reports, which.name, &DiskReport::name) == reports.end();
}

// Why the slot of a device does not follow from its name.
std::string DeviceRequests::why_no_slot(const std::string& name) const {
    std::vector<std::string> slots;
    for (const store::Slot slot : parts_.disks.slots_of(name)) {
        slots.push_back(std::to_string(slot));
    }
    if (slots.empty()) return "the slot of its disk is unknown; name it with --slot";
    return "disks of the slots " + config::joined(slots) +
           " have that name; say which one with --slot";
}

// Why there is nothing to forget; empty if there is.
std::string DeviceRequests::why_not_lost(const LostDevice& which) const {
    if (parts_.disks.empty()) {
        return "the node was started without disks: put a disk into the configuration, restart, "
               "and forget it then";
    }
    if (is_unknown(which)) {
        return which.slot ? "no disk ever had slot " + std::to_string(*which.slot) : kNoSuchDevice;
    }
    if (!which.slot) return why_no_slot(which.name);
    const std::string slot = "slot " + std::to_string(*which.slot);
    const SlotEntry* const entry = parts_.disks.slots().find(*which.slot);
    if (entry->use == SlotUse::kEmpty) return "nothing is on the disk of " + slot;
    const NodeDisk* const open = parts_.disks.open_disk_of(*entry);
    return open == nullptr
               ? ""
               : "the disk of " + slot + " is not missing: it is open as " + open->settings().name;
}

// -- following a configuration --

DeviceRequests::Conflicts DeviceRequests::check_open_disks(const config::Snapshot& next) const {
    Conflicts conflicts;
    for (const auto& disk : parts_.disks.all()) {
        if (!is_open(disk.get())) continue;
        const devices::DeviceSettings& open = disk->settings();
        const auto* const wanted = find_device(next.get<DeviceList>(), open.name);
        if (wanted == nullptr) continue;
        for (const std::string& key : differences(open, *wanted)) {
            conflicts.problems.push_back(parts_.configuration.file() +
                                         ": devices: " + why_kept(key, open));
            conflicts.need_restart &= key != kSizeKey && key != kThinKey;
        }
    }
    return conflicts;
}

Task<std::vector<DeviceOutcome>> DeviceRequests::follow(const Plan* plan) {
    std::vector<DeviceOutcome> outcomes;
    std::vector<std::string> gone;
    for (const auto& disk : parts_.disks.all()) {
        const std::string& name = disk->settings().name;
        if (find_device(plan->wanted, name) == nullptr) gone.push_back(name);
    }
    for (const DiskReport& report : parts_.disks.reports()) {
        if (find_device(plan->wanted, report.name) == nullptr) parts_.disks.forget(report.name);
    }
    for (const std::string& name : gone) {
        std::string which = name;
        auto outcome = co_await let_disk_go(std::move(which), DeviceChanges::Keep::kNo);
        outcomes.push_back(std::move(outcome));
    }
    for (const devices::DeviceSettings& wanted : plan->wanted) {
        if (is_open(parts_.disks.find(wanted.name))) continue;
        const auto* const before = find_device(plan->before, wanted.name);
        if (before != nullptr && differences(*before, wanted).empty()) continue;
        devices::DeviceSettings settings = wanted;
        auto outcome = co_await open_disk(std::move(settings));
        outcomes.push_back(std::move(outcome));
    }
    co_return outcomes;
}

// -- a disk --

// Why opening cannot be attempted; empty if it can.
std::string DeviceRequests::why_not_openable(const devices::DeviceSettings& settings) const {
    if (parts_.disks.empty())
        return "the node was started without disks: the first disk needs a restart";
    const auto& pools = parts_.configuration.current()->get<std::vector<devices::PoolSettings>>();
    const auto pool = std::ranges::find(pools, settings.pool, &devices::PoolSettings::name);
    if (pool == pools.end()) return "its pool " + settings.pool + " is new: that needs a restart";
    for (const auto& disk : parts_.disks.all()) {
        if (!is_open(disk.get()) || disk->settings().path != settings.path) continue;
        return settings.path + " is open as " + disk->settings().name;
    }
    return {};
}

Task<DeviceOutcome> DeviceRequests::open_disk(devices::DeviceSettings settings) {
    const std::string name = settings.name;
    DeviceOutcome outcome{.device = name,
                          .kind = DeviceOutcome::Kind::kNotAdded,
                          .words = why_not_openable(settings)};
    if (outcome.words.empty()) {
        outcome = co_await parts_.changes.add(std::move(settings));
        parts_.warnings.note_disk(name);
        parts_.missing.note();
    }
    parts_.warnings.note_outcome(outcome);
    co_return std::move(outcome);
}

Task<DeviceOutcome> DeviceRequests::let_disk_go(std::string name, DeviceChanges::Keep keep) {
    std::string which = name;
    auto outcome = co_await parts_.changes.remove(std::move(which), keep);
    parts_.warnings.note_disk(name);
    parts_.missing.note();
    parts_.warnings.note_outcome(outcome);
    co_return std::move(outcome);
}

}  // namespace fopd::daemon

#include "daemon/device_warnings.h"

#include <algorithm>

namespace fopd::daemon {

namespace {

const char* event_of_refusal(DeviceOutcome::Kind kind) {
    using Kind = DeviceOutcome::Kind;
    if (kind == Kind::kNotAdded) return "daemon.device_not_added";
    return kind == Kind::kNotRemoved ? "daemon.device_not_removed" : "daemon.device_not_forgotten";
}

}  // namespace

void DeviceWarnings::note_disk(const std::string& name) {
    warnings_.erase(name);
    for (const DiskReport& disk : disks_.reports()) {
        if (disk.name != name || disk.reason.empty()) continue;
        warnings_[name] = {.text = "device " + disk.name + " (" + disk.path + ") is " + disk.state +
                                   ": " + disk.reason,
                           .reason = disk.reason};
    }
}

void DeviceWarnings::note_outcome(const DeviceOutcome& outcome) const {
    if (outcome.done()) return;
    emit_each(events_, core::Level::kWarn, event_of_refusal(outcome.kind),
              {{"device", std::string_view(outcome.device)},
               {"reason", std::string_view(outcome.words)}});
}

std::vector<Warning> DeviceWarnings::all() const {
    std::vector<Warning> all;
    if (warnings_.empty()) return all;
    const std::vector<DiskReport> disks = disks_.reports();
    for (const auto& [name, noted] : warnings_) {
        const auto disk = std::ranges::find(disks, name, &DiskReport::name);
        const bool repeats = disk != disks.end() && disk->reason == noted.reason;
        all.push_back({.text = noted.text, .device = repeats ? name : std::string()});
    }
    return all;
}

}  // namespace fopd::daemon

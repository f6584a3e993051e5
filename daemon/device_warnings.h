#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/events.h"
#include "daemon/device_changes.h"
#include "daemon/node_disks.h"

namespace fopd::daemon {

// Tells administrators which disks could not be opened properly, and which changes of the disks
// have failed. Lives on the control reactor.
class DeviceWarnings {
public:
    // Both arguments outlive this object.
    DeviceWarnings(const NodeDisks& disks, core::EventSink& events)
        : disks_(disks), events_(events) {}

    // Records whether the disk is open properly. Called after each attempt to open or remove it.
    void note_disk(const std::string& name);
    // Reports a change that has failed as an event.
    void note_outcome(const DeviceOutcome& outcome) const;

    // The warnings in words, at most one for each disk.
    std::vector<std::string> all() const;

private:
    const NodeDisks& disks_;
    core::EventSink& events_;
    std::map<std::string, std::string> warnings_;  // By device.
};

}  // namespace fopd::daemon

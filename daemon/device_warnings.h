#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/events.h"
#include "daemon/device_changes.h"
#include "daemon/node_disks.h"

namespace fopd::daemon {

// For administrators.
struct Warning {
    std::string text;         // For people.
    std::string device = {};  // The device whose reason the text repeats; empty: it repeats none.
};

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

    // At most one for each disk.
    std::vector<Warning> all() const;

private:
    const NodeDisks& disks_;
    core::EventSink& events_;
    struct Noted {
        std::string text;
        std::string reason;  // Of the disk, at that time.
    };
    std::map<std::string, Noted> warnings_;  // By device.
};

}  // namespace fopd::daemon

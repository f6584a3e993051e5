#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/task.h"
#include "daemon/change_turn.h"
#include "daemon/configuration.h"
#include "daemon/device_changes.h"
#include "daemon/device_warnings.h"
#include "daemon/missing_disks.h"
#include "daemon/node_disks.h"
#include "devices/settings.h"
#include "store/volume.h"

namespace fopd::daemon {

// Checks whether an administrator or the configuration may add, remove or write off a disk, and
// then executes the change. Lives on the control reactor.
class DeviceRequests {
public:
    // All parts outlive the object.
    struct Parts {
        const Configuration& configuration;
        NodeDisks& disks;
        DeviceChanges& changes;
        DeviceWarnings& warnings;
        MissingDisks& missing;
        ChangeTurn& turn;
    };
    explicit DeviceRequests(const Parts& parts) : parts_(parts) {}

    // -- requests of an administrator; one runs at a time, and the others wait --

    // Opens a disk that is in the configuration file, as the file is now, and that is not open yet.
    // The refusal names the mistake in the file, or the reason why the disk cannot be opened.
    using Outcome = std::expected<DeviceOutcome, Configuration::Refused>;
    Task<Outcome> add(std::string name);
    // Removes a disk that has no objects. add() or the next start opens the disk again, if it is in
    // the configuration. A disk that is missing is not removed.
    Task<Outcome> remove(std::string name);
    // Writes off a lost disk: forgets the names of its objects, and the disk. Exactly one of `name`
    // and `slot` identifies the disk.
    struct LostDevice {
        std::string name = {};
        std::optional<store::Slot> slot = {};
        bool is_sure = false;
    };
    Task<Outcome> forget(LostDevice which);
    // Whether the configuration file, as it is now, has the device.
    bool is_configured(const std::string& device) const;

    // -- following a configuration, by a caller that has the turn --

    struct Conflicts {
        std::vector<std::string> problems{};
        bool need_restart = true;  // A restart takes all these changes.
    };
    // The settings of open disks that are different in `next`: none of them can change.
    Conflicts check_open_disks(const config::Snapshot& next) const;
    // Opens disks that are new in the configuration and removes those no longer in it. A disk that
    // was removed by hand and is still configured stays out.
    struct Plan {
        std::vector<devices::DeviceSettings> before;
        std::vector<devices::DeviceSettings> wanted;
    };
    Task<std::vector<DeviceOutcome>> follow(const Plan* plan);

private:
    Task<DeviceOutcome> open_disk(devices::DeviceSettings settings);
    Task<DeviceOutcome> let_disk_go(std::string name, DeviceChanges::Keep keep);
    Task<Outcome> add_configured(std::string name);
    Task<Outcome> remove_present(std::string name);
    Task<DeviceOutcome> forget_lost(LostDevice which);
    std::string why_missing(const std::string& name) const;
    bool is_unknown(const LostDevice& which) const;
    std::string why_no_slot(const std::string& name) const;
    std::string why_not_lost(const LostDevice& which) const;
    std::string why_not_openable(const devices::DeviceSettings& settings) const;

    const Parts parts_;
};

}  // namespace fopd::daemon

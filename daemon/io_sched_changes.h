#pragma once

#include <expected>
#include <functional>
#include <span>

#include "core/events.h"
#include "daemon/configuration.h"

namespace fopd::daemon {

// Changes of a node's I/O schedulers by an administrator at run time, which last until the next
// reload or restart. Used on the control reactor.
class IoSchedChanges {
public:
    struct Parts {
        core::EventSink& events;
        Configuration& configuration;
        // Why nothing can be changed now, if the node is not ready.
        std::function<std::expected<void, Configuration::Refused>()> check_ready;
        // Sends the settings in force to the localities.
        std::function<void()> apply;
    };
    explicit IoSchedChanges(Parts parts) : parts_(std::move(parts)) {}

    // The settings that have changed. Refused as busy unless the node is ready; all or nothing.
    using Outcome = std::expected<config::Changes, Configuration::Refused>;
    Outcome set(std::span<const SectionValue> values);

private:
    const Parts parts_;
};

}  // namespace fopd::daemon

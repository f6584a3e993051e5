#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/entropy.h"
#include "core/events.h"
#include "core/reactor.h"
#include "daemon/access.h"
#include "daemon/configuration.h"
#include "daemon/disk_bay.h"
#include "daemon/epoch_stores.h"
#include "daemon/service_manager.h"
#include "daemon/start_problem.h"
#include "devices/label.h"
#include "eh/peers/handler.h"
#include "fabric/transport.h"
#include "library/library_bay.h"
#include "library/options.h"
#include "store/volume.h"

namespace fopd::daemon {

// The parts of the real or simulated world that a node uses. All members outlive the node.
struct NodeWorld {
    core::Reactor& control;  // Runs Node's own code; not a locality's reactor.
    std::vector<core::Reactor*> localities;
    const core::Clock& clock;
    core::Entropy& entropy;
    core::EventSink& events;
    ServiceManager& manager;
    Configuration& configuration;
    // Opens the configured disks; null for a node that never has any.
    DiskBay* bay = nullptr;
    // Opens the tape library; null for a node that never has one.
    library::LibraryBay* library_bay = nullptr;
    // Stores the state of epochs that must survive restarts; null unless eh.kind is peers.
    EpochStores* epoch_stores = nullptr;
    // Observes epochs with peers in tests; null in a daemon.
    eh::peers::EpochObserver* epoch_observer = nullptr;
    // The node's id in the labels of its disks.
    devices::NodeId id{};
    // Returns the transport for a scheme of fabric.listen, or null if the scheme has none.
    std::function<fabric::Transport*(std::string_view scheme)> transport;
    // Loads the access rules (principals, keys, rights) that the configuration names.
    std::function<Started<AccessPtr>(const config::Snapshot&)> load_access;
    // Applies the log level that a reload has changed.
    std::function<void()> apply_settings;
};

struct NodeOptions {
    // Whether unregistered buffers are good enough; a production node refuses to start with them.
    enum class Buffers : std::uint8_t { kRegistered, kAny };
    Buffers buffers = Buffers::kRegistered;
    // Replaces fabric.listen if set.
    std::optional<std::vector<fabric::Address>> listen{};
    store::SweepOptions sweep = {};
    // The tape library; empty: the node has none.
    std::optional<library::LibraryOptions> library = {};
};

}  // namespace fopd::daemon

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/events.h"
#include "core/metrics.h"
#include "core/task.h"
#include "daemon/json_writer.h"
#include "daemon/node_disks.h"
#include "daemon/node_life.h"
#include "objects/name_parts.h"

namespace fopd::daemon {

// Tells administrators which slots of the node have no disk, and how many objects cannot be read
// because of that. Lives on the control reactor.
class MissingDisks {
public:
    // All parts outlive the object.
    struct Parts {
        core::EventSink& events;
        const NodeDisks& disks;
        const std::unique_ptr<objects::NameParts>& names;  // Null without disks.
        const NodeLife& life;
    };
    explicit MissingDisks(const Parts& parts) : parts_(parts) {}

    // Reports the slots that are missing now and were not before. Called after each change of the
    // disks.
    void note();
    // Counts the objects with a name of each missing slot. Ends early when the node stops.
    Task<void> count();
    // Nothing while the number is unknown: it is not counted yet, or the names were lost.
    std::optional<std::uint64_t> objects_of(store::Slot slot) const;

    // A list, as in GET /v1/status.
    void write(JsonWriter& json) const;
    // From any thread.
    void collect(core::MetricSink& sink) const;

private:
    Task<Result<std::optional<std::uint64_t>>> count_of(store::Slot slot, devices::DiskId disk);

    const Parts parts_;
    std::map<store::Slot, std::optional<std::uint64_t>> missing_;  // With their objects.
    mutable std::mutex shown_;
    std::map<std::string, std::uint64_t> count_by_pool_;  // Held while used: shown_.
};

}  // namespace fopd::daemon

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.h"
#include "daemon/configuration.h"
#include "daemon/json_writer.h"
#include "daemon/node.h"

namespace fopd::daemon {

// The state of a node, in short, for a monitoring system.
struct NodeHealth {
    enum class Level : std::uint8_t { kGood, kWarning, kCritical };
    struct Problem {
        Level level = Level::kWarning;
        std::string text;  // One line.
    };

    std::vector<Problem> problems;  // The worst first.
    std::uint64_t open_disks = 0;
    std::uint64_t objects = 0;  // On open disks.

    Level level() const { return problems.empty() ? Level::kGood : problems.front().level; }
};

// Reads only figures that are published already, so it never waits for a locality or a disk. Lives
// on the control reactor.
NodeHealth health_of(const Node& node, const Configuration& configuration,
                     const core::Clock& clock);

// A list of objects with state and text.
void write_problems(JsonWriter& json, const NodeHealth& health);
// The body of the reply to GET /v1/health.
std::string health_json(const NodeHealth& health);

}  // namespace fopd::daemon

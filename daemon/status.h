#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "daemon/health.h"
#include "daemon/json_writer.h"
#include "daemon/node.h"

namespace fopd::daemon {

// Facts for the status answer that the node itself does not know.
struct StatusFacts {
    core::Level log_level;
    Duration watchdog_timeout;
    struct Thread {
        int core;           // The core it is pinned to, or -1.
        Duration cpu_time;  // The CPU time it has used.
    };
    std::vector<Thread> threads;  // The threads of the localities; empty in the simulated world.
};

// The answer to GET /v1/status. Runs on the control thread and reads only the localities' published
// figures, so that a stuck locality is reported and not waited for.
std::string status_json(const Node& node, const Configuration& configuration,
                        const StatusFacts& facts, const NodeHealth& health);

// One session, one fop, as the answers to GET /v1/sessions and /v1/trace show them.
void write_session(JsonWriter& json, const LocalityQuestions::LocalSession& session);
void write_fop(JsonWriter& json, const reqh::FopRecord& record, Instant now);

// The progress and findings of a disk's check, as in GET /v1/store/check-report.
void write_check(JsonWriter& json, std::string_view device, const objects::CheckStatus& check);

// The figures of the node and its localities, for GET /metrics. Safe from any thread while the node
// lives.
class NodeMetrics final : public core::MetricSource {
public:
    // `cpu_time` returns the CPU time used by a locality's thread.
    NodeMetrics(const Node& node, const core::Clock& clock,
                std::function<Duration(std::size_t locality)> cpu_time)
        : node_(node), clock_(clock), cpu_time_(std::move(cpu_time)) {}
    void collect(core::MetricSink& sink) const override;

private:
    void collect_fabric(core::MetricSink& sink) const;

    const Node& node_;
    const core::Clock& clock_;
    const std::function<Duration(std::size_t)> cpu_time_;
};

}  // namespace fopd::daemon

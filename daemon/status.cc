#include "daemon/status.h"

#include <array>

#include <unistd.h>

#include "daemon/json_writer.h"
#include "daemon/log_format.h"
#include "daemon/settings.h"
#include "daemon/version.h"

namespace fopd::daemon {

namespace {

constexpr StatusFacts::Thread kNoThread{.core = -1, .cpu_time = Duration{0}};

void write_locality(JsonWriter& json, const Node& node, std::size_t index, Instant now,
                    const StatusFacts::Thread& thread) {
    const Locality& locality = *node.localities()[index];
    const core::ReactorStats& stats = locality.reactor().stats();
    const Instant last_turn{Duration{static_cast<std::int64_t>(stats.last_turn_ns.get())}};
    json.begin_object();
    json.field("index", locality.index());
    json.key("core");
    if (thread.core >= 0) {
        json.value(thread.core);
    } else {
        json.null();
    }
    json.field("state", node.silent_for(index) > Node::kStuckAfter ? "stuck" : "turning");
    json.field("backend", locality.reactor().backend_name());
    json.field("since_turn_s", std::max(0.0, in_seconds(now - last_turn)));
    json.field("turns", stats.turns.get());
    json.field("sleeps", stats.sleeps.get());
    json.field("busy_s", in_seconds(thread.cpu_time));
    json.field("resumed", stats.resumed.get());
    json.field("timers", stats.timers_fired.get());
    json.field("messages", stats.messages.get());
    json.field("io_submitted", stats.io_submitted.get());
    json.field("io_completed", stats.io_completed.get());
    json.field("buffers_total", locality.buffers().total_count());
    json.field("buffers_free", locality.buffers().free_count());
    json.field("buffers_registered", node.buffers_registered(index));
    json.end_object();
}

}  // namespace

std::string status_json(const Node& node, const Configuration& configuration,
                        const StatusFacts& facts) {
    const Instant now = node.now();
    JsonWriter json;
    json.begin_object();
    json.field("name", std::string_view(node_name(*configuration.current())));
    json.field("version", version());
    json.field("pid", ::getpid());
    json.field("state", to_string(node.state()));
    json.field("uptime_s", in_seconds(now - node.created_at()));
    if (node.ready_at() != kNever)
        json.field("ready_s", in_seconds(node.ready_at() - node.created_at()));
    json.key("config").begin_object();
    json.field("file", std::string_view(configuration.file()));
    json.field("hash", std::string_view(configuration.hash()));
    json.list("differs", configuration.differing_keys());
    json.list("needs_restart", configuration.keys_waiting_for_restart());
    json.end_object();
    json.field("log_level", level_name(facts.log_level));
    json.field("watchdog", facts.watchdog_timeout.count() > 0);
    json.key("localities").begin_array();
    for (std::size_t index = 0; index < node.localities().size(); ++index) {
        write_locality(json, node, index, now,
                       index < facts.threads.size() ? facts.threads[index] : kNoThread);
    }
    json.end_array();
    json.list("warnings", node.warnings());
    json.end_object();
    return json.text();
}

void NodeMetrics::collect(core::MetricSink& sink) const {
    struct Figure {
        std::string_view name;
        std::string_view help;
        core::Counter core::ReactorStats::* counter;
    };
    static constexpr std::array kFigures{
        Figure{"fopd_locality_turns", "Turns of the locality's event loop.",
               &core::ReactorStats::turns},
        Figure{"fopd_locality_sleeps", "Times the locality went to sleep.",
               &core::ReactorStats::sleeps},
        Figure{"fopd_locality_resumed", "Coroutines the locality resumed.",
               &core::ReactorStats::resumed},
        Figure{"fopd_locality_timers", "Timers that fired.", &core::ReactorStats::timers_fired},
        Figure{"fopd_locality_messages", "Messages from other threads.",
               &core::ReactorStats::messages},
        Figure{"fopd_locality_io_submitted", "I/O operations submitted.",
               &core::ReactorStats::io_submitted},
        Figure{"fopd_locality_io_completed", "I/O operations completed.",
               &core::ReactorStats::io_completed},
    };
    for (const auto& locality : node_.localities()) {
        const std::string index = std::to_string(locality->index());
        const std::array labels{core::Label{"locality", index}};
        const core::ReactorStats& stats = locality->reactor().stats();
        for (const Figure& figure : kFigures) {
            sink.counter(figure.name, figure.help, labels,
                         static_cast<double>((stats.*figure.counter).get()));
        }
        sink.counter("fopd_locality_busy_seconds", "CPU time the locality has used.", labels,
                     in_seconds(cpu_time_(locality->index())));
        sink.gauge("fopd_buffers_free", "Pieces of I/O memory not in use.", labels,
                   static_cast<double>(locality->buffers().free_count()));
        sink.gauge("fopd_buffers", "Pieces of I/O memory.", labels,
                   static_cast<double>(locality->buffers().total_count()));
    }
    const std::array version_label{core::Label{"version", version()}};
    sink.gauge("fopd_build_info", "Always 1; the label says which fopd this is.", version_label, 1);
    sink.gauge("fopd_uptime_seconds", "Time since the daemon was started.", {},
               in_seconds(clock_.now() - node_.created_at()));
}

}  // namespace fopd::daemon

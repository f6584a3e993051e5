#include "daemon/status.h"

#include <array>

#include <unistd.h>

#include "daemon/log_format.h"
#include "daemon/version.h"
#include "fabric/address.h"
#include "fabric/session/session.h"
#include "fop/spent_names.h"
#include "lrs/classes/key.h"
#include "objects/fids.h"

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
    json.field("state",
               node.watch().silent_for(index) > LocalityWatch::kStuckAfter ? "stuck" : "turning");
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
    if (const fabric::HostStatistics* host = locality.host_statistics(); host != nullptr) {
        json.field("sessions", host->sessions.get());
        json.field("fops_running", locality.handler()->running_count());
        json.field("fops_queued",
                   locality.requests()->figures(fop::Lane::kData).queued.get() +
                       locality.requests()->figures(fop::Lane::kControl).queued.get());
    }
    json.end_object();
}

}  // namespace

std::string status_json(const Node& node, const Configuration& configuration,
                        const StatusFacts& facts, const NodeHealth& health) {
    const Instant now = node.now();
    JsonWriter json;
    json.begin_object();
    json.field("name", node_name(*configuration.current()));
    json.field("version", version());
    json.field("pid", ::getpid());
    json.field("state", to_string(node.state()));
    json.field("uptime_s", in_seconds(now - node.life().created_at()));
    if (node.life().ready_at() != kNever)
        json.field("ready_s", in_seconds(node.life().ready_at() - node.life().created_at()));
    json.key("config").begin_object();
    json.field("file", configuration.file());
    json.field("hash", configuration.hash());
    json.list("differs", configuration.differing_keys());
    json.list("needs_restart", configuration.keys_waiting_for_restart());
    json.end_object();
    std::vector<std::string> addresses;
    for (const fabric::Address& each : node.addresses()) addresses.push_back(format_address(each));
    json.list("listening", addresses);
    json.field("log_level", level_name(facts.log_level));
    json.field("watchdog", facts.watchdog_timeout.count() > 0);
    if (const NodeEpochs* const epochs = std::as_const(*node.localities().front()).epochs();
        epochs != nullptr) {
        const NodeEpochs::MemberCount members = epochs->member_count();
        json.key("epochs")
            .begin_object()
            .field("members", members.present)
            .field("expected", members.expected)
            .end_object();
    }
    json.key("localities").begin_array();
    for (std::size_t index = 0; index < node.localities().size(); ++index) {
        write_locality(json, node, index, now,
                       index < facts.threads.size() ? facts.threads[index] : kNoThread);
    }
    json.end_array();
    json.array("devices", node.disks().reports_of_all(), &write_disk);
    json.key("missing_slots");
    node.missing().write(json);
    std::vector<std::string> warnings;
    std::vector<std::string> warning_devices;
    for (const Warning& each : node.warnings()) {
        warnings.push_back(each.text);
        warning_devices.push_back(each.device);
    }
    json.list("warnings", warnings);
    json.list("warning_devices", warning_devices);
    json.key("problems");
    write_problems(json, health);
    json.end_object();
    return json.text();
}

namespace {

void write_finding(JsonWriter& json, const store::CheckFinding& finding) {
    json.begin_object().field("reason", finding.reason);
    json.field_or_null("object", finding.object.transform(&objects::format_fid));
    json.field("name", finding.name);
    json.field_or_null("object_block", finding.object_block);
    std::optional<std::uint64_t> block;
    if (finding.range) block = finding.range->block;
    json.field_or_null("block", block);
    json.field("blocks", finding.range ? finding.range->count : 0U);
    json.field_or_null("log_entry", finding.entry);
    json.end_object();
}

}  // namespace

void write_check(JsonWriter& json, std::string_view device, const objects::CheckStatus& check) {
    const store::CheckReport& report = check.report;
    json.begin_object()
        .field("device", device)
        .field("state", objects::to_string(check.state))
        .field("stage", check.stage)
        .field("problem", check.problem)
        .field("seconds", in_seconds(check.took))
        .field("objects", report.objects)
        .field("uploads", report.uploads)
        .field("cleared", report.cleared)
        .field("replies", report.replies)
        .field("extents", report.extents)
        .field("blocks", report.blocks)
        .field("names", report.names)
        .field("log_entries", report.log_entries)
        .field("log_records", report.log_records)
        .field("findings", report.finding_count);
    json.array("found", report.findings, &write_finding).end_object();
}

void write_session(JsonWriter& json, const LocalityQuestions::LocalSession& session) {
    const fabric::SessionInfo& info = session.info;
    json.begin_object();
    json.field("id", fabric::format_session_id(info.id));
    json.field("locality", session.locality);
    json.field("peer", info.peer);
    lrs::Digits digits;
    json.field("client", lrs::hex_of_client(info.client, digits));
    json.field("principal", info.principal);
    json.field("user", info.user);
    json.field("age_s", in_seconds(info.age));
    json.field("idle_s", in_seconds(info.idle));
    json.field("fops", info.statistics.fops);
    json.field("fops_held", info.fops_held);
    json.field("fops_waiting", info.fops_waiting);
    json.field("fop_credits", info.fop_credits);
    json.field("fop_loans", info.fop_loans);
    json.field("messages_in", info.statistics.messages_in);
    json.field("messages_out", info.statistics.messages_out);
    json.field("bytes_in", info.statistics.bytes_in);
    json.field("bytes_out", info.statistics.bytes_out);
    json.field("bytes_transferred", info.statistics.bytes_transferred);
    json.end_object();
}

namespace {

void write_spent(JsonWriter& json, const fop::TimeSpent& spent) {
    json.key("spent").begin_object();
    for (std::size_t i = 0; i < fop::kSpentOnCount; ++i)
        json.field(fop::kSpentNames[i], in_seconds(spent.of(static_cast<fop::SpentOn>(i))));
    json.field(fop::kComputedName, in_seconds(fop::computed(spent))).end_object();
}

}  // namespace

void write_fop(JsonWriter& json, const reqh::FopRecord& record, Instant now) {
    const bool finished = record.state == reqh::FopRecord::State::kFinished;
    json.begin_object();
    json.field("id", reqh::format_fop_id(record.id));
    json.field("op", record.type->name);
    json.field("peer", record.peer.view());
    json.field("principal", record.principal.view());
    json.field("class", record.of_class.view());
    json.field("rule", record.of_rule.view());
    json.field("state", finished                                           ? "finished"
                        : record.state == reqh::FopRecord::State::kRunning ? "running"
                                                                           : "queued");
    if (finished) json.field("status", to_string(record.status));
    json.field("phase", to_string(record.times.phase()));
    if (record.wait.what != reqh::WaitsFor::kNothing) {
        json.field("waits_for", reqh::to_text(record.wait));
    }
    if (finished && record.waited.span > Duration::zero()) {
        json.field("waited_for", reqh::to_text(record.waited.wait));
        json.field("waited_s", in_seconds(record.waited.span));
    }
    if (finished) write_spent(json, record.spent);
    json.field("age_s", in_seconds(now - record.arrived_at));
    json.key("phases").begin_object();
    for (std::size_t i = 0; i < reqh::kPhaseCount; ++i) {
        const auto phase = static_cast<reqh::Phase>(i);
        if (record.times.reached(phase)) {
            json.field(to_string(phase), in_seconds(record.times.of(phase)));
        }
    }
    json.end_object();
    json.end_object();
}

namespace {

template <typename Owner>
struct CounterOf {
    std::string_view name;
    std::string_view help;
    core::Counter Owner::* counter;
};

template <typename Owner>
void collect_counters(core::MetricSink& sink, std::span<const CounterOf<Owner>> counters,
                      std::span<const core::Label> labels, const Owner& owner) {
    for (const CounterOf<Owner>& each : counters) {
        const auto count = static_cast<double>((owner.*each.counter).get());
        sink.counter(each.name, each.help, labels, count);
    }
}

using SessionFigure = CounterOf<fabric::HostStatistics>;
constexpr std::array kSessionFigures{
    SessionFigure{"fopd_sessions_opened", "Sessions ever opened.", &fabric::HostStatistics::opened},
    SessionFigure{"fopd_sessions_refused", "Connections that were refused a session.",
                  &fabric::HostStatistics::refused},
    SessionFigure{"fopd_connections_silent", "Connections ended because nothing was asked for.",
                  &fabric::HostStatistics::silent},
    SessionFigure{"fopd_sessions_broken", "Sessions ended because the peer broke the protocol.",
                  &fabric::HostStatistics::broken},
    SessionFigure{"fopd_sessions_expired",
                  "Sessions ended by the lease or the handshake's deadline.",
                  &fabric::HostStatistics::expired},
    SessionFigure{"fopd_sessions_lost",
                  "Sessions whose connection broke, or whose peer ended it without a word.",
                  &fabric::HostStatistics::lost},
    SessionFigure{"fopd_messages_garbage",
                  "Messages that cannot be decoded, or that name no session.",
                  &fabric::HostStatistics::garbage},
    SessionFigure{"fopd_messages_unsealed", "Messages without their session's seal, or repeated.",
                  &fabric::HostStatistics::unsealed},
    SessionFigure{"fopd_messages_received", "Messages received.",
                  &fabric::HostStatistics::messages_in},
    SessionFigure{"fopd_messages_sent", "Messages sent.", &fabric::HostStatistics::messages_out},
    SessionFigure{"fopd_message_bytes_received", "Bytes of messages received.",
                  &fabric::HostStatistics::bytes_in},
    SessionFigure{"fopd_message_bytes_sent", "Bytes of messages sent.",
                  &fabric::HostStatistics::bytes_out},
    SessionFigure{"fopd_bulk_bytes_pulled", "Bytes fetched from clients' memory.",
                  &fabric::HostStatistics::bytes_pulled},
    SessionFigure{"fopd_bulk_bytes_pushed", "Bytes placed into clients' memory.",
                  &fabric::HostStatistics::bytes_pushed},
};

using ReactorFigure = CounterOf<core::ReactorStats>;
constexpr std::array kReactorFigures{
    ReactorFigure{"fopd_locality_turns", "Turns of the locality's event loop.",
                  &core::ReactorStats::turns},
    ReactorFigure{"fopd_locality_sleeps", "Times the locality went to sleep.",
                  &core::ReactorStats::sleeps},
    ReactorFigure{"fopd_locality_spins_won", "Times the locality looked for work and found some.",
                  &core::ReactorStats::spins_won},
    ReactorFigure{"fopd_locality_spins_lost", "Times the locality looked for work and found none.",
                  &core::ReactorStats::spins_lost},
    ReactorFigure{"fopd_locality_resumed", "Coroutines the locality resumed.",
                  &core::ReactorStats::resumed},
    ReactorFigure{"fopd_locality_timers", "Timers that fired.", &core::ReactorStats::timers_fired},
    ReactorFigure{"fopd_locality_messages", "Messages from other threads.",
                  &core::ReactorStats::messages},
    ReactorFigure{"fopd_locality_io_submitted", "I/O operations submitted.",
                  &core::ReactorStats::io_submitted},
    ReactorFigure{"fopd_locality_io_completed", "I/O operations completed.",
                  &core::ReactorStats::io_completed},
};

// A counter of the requests that were put off for want of one kind of memory.
struct MemoryLack {
    std::string_view memory;
    core::Counter fabric::ServerStatistics::* counter;
};
constexpr std::array kMemoryLacks{
    MemoryLack{"replies", &fabric::ServerStatistics::lacked_replies},
    MemoryLack{"requests", &fabric::ServerStatistics::lacked_requests},
    MemoryLack{"waiting", &fabric::ServerStatistics::lacked_waiting},
};

void collect_sessions(core::MetricSink& sink, std::string_view index,
                      const fabric::HostStatistics& host, const fabric::ServerStatistics& server) {
    const std::array labels{core::Label{"locality", index}};
    sink.gauge("fopd_sessions", "Sessions that are open.", labels,
               static_cast<double>(host.sessions.get()));
    collect_counters<fabric::HostStatistics>(sink, kSessionFigures, labels, host);
    for (const fabric::Stranger::Kind kind : fabric::kStrangerKinds) {
        const std::array kind_labels{core::Label{"locality", index},
                                     core::Label{"kind", fabric::to_string(kind)}};
        sink.counter("fopd_connections_without_request",
                     "Connections that ended without a request to connect, by what they sent.",
                     kind_labels,
                     static_cast<double>(host.strangers[static_cast<std::size_t>(kind)].get()));
    }
    for (const MemoryLack& lack : kMemoryLacks) {
        const std::array lack_labels{core::Label{"locality", index},
                                     core::Label{"memory", lack.memory}};
        sink.counter("fopd_requests_put_off",
                     "Requests answered \"try again\" because their principal has used up "
                     "its share of a locality's memory.",
                     lack_labels, static_cast<double>((server.*lack.counter).get()));
    }
    sink.counter(
        "fopd_sessions_out_of_memory",
        "Sessions ended because their principal has used up its share of a locality's memory.",
        labels, static_cast<double>(server.ended.get()));
}

void collect_foms(core::MetricSink& sink, std::string_view index,
                  const reqh::RequestHandler& handler) {
    const std::array labels{core::Label{"locality", index}};
    sink.gauge("fopd_foms", "Fops that are running.", labels,
               static_cast<double>(handler.running_count()));
    sink.counter("fopd_foms_hung",
                 "Fops that ran for two minutes without waiting for their client.", labels,
                 static_cast<double>(handler.hung_count()));
    sink.gauge("fopd_foms_allowed",
               "How many data fops may run: each counts once, and once more for each 64 KiB.",
               labels, static_cast<double>(handler.admission().allowed()));
}

}  // namespace

void NodeMetrics::collect_fabric(core::MetricSink& sink) const {
    std::vector<const reqh::FopMetrics*> fops;
    for (const auto& locality : node_.localities()) {
        const fabric::HostStatistics* const host = locality->host_statistics();
        if (host == nullptr) continue;
        const std::string index = std::to_string(locality->index());
        collect_sessions(sink, index, *host, *locality->server_statistics());
        collect_foms(sink, index, *locality->handler());
        locality->requests()->collect(sink, index);
        fops.push_back(&locality->handler()->metrics());
        if (std::as_const(*locality).epochs() != nullptr) locality->epochs()->collect(sink);
    }
    if (!fops.empty()) reqh::FopMetrics::collect(fops, sink);
    node_.class_ledger().collect(sink);
}

void NodeMetrics::collect(core::MetricSink& sink) const {
    if (node_.opened()) {
        collect_fabric(sink);
        for (const auto& locality : std::as_const(node_).localities()) {
            std::as_const(*locality).io().collect(sink, std::to_string(locality->index()));
            const library::TapeLibrary* const library = locality->library();
            if (library != nullptr) library->figures().collect(sink, clock_.now());
        }
    }
    node_.disks().collect(sink);
    node_.missing().collect(sink);
    node_.layout().collect(sink);
    node_.reloads().collect(sink);
    const NodeState state_now = node_.state();
    for (const NodeState state : kNodeStates) {
        const std::array state_label{core::Label{"state", to_string(state)}};
        sink.gauge("fopd_node_state", "1 for the state of the node, 0 for all others.", state_label,
                   state == state_now ? 1 : 0);
    }
    for (const auto& locality : node_.localities()) {
        const std::string index = std::to_string(locality->index());
        const std::array labels{core::Label{"locality", index}};
        const core::ReactorStats& stats = locality->reactor().stats();
        collect_counters<core::ReactorStats>(sink, kReactorFigures, labels, stats);
        sink.counter("fopd_locality_busy_seconds", "CPU time the locality has used.", labels,
                     in_seconds(cpu_time_(locality->index())));
        sink.gauge("fopd_buffers_free", "Buffers that are not in use.", labels,
                   static_cast<double>(locality->buffers().free_count()));
        sink.gauge("fopd_buffers", "Buffers of I/O memory.", labels,
                   static_cast<double>(locality->buffers().total_count()));
    }
    const std::array version_label{core::Label{"version", version()}};
    sink.gauge("fopd_build_info", "Always 1; the label says which fopd this is.", version_label, 1);
    sink.gauge("fopd_uptime_seconds", "Time since the daemon was started.", {},
               in_seconds(clock_.now() - node_.life().created_at()));
}

}  // namespace fopd::daemon

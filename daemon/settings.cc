#include "daemon/settings.h"

#include "config/section.h"
#include "config/types.h"

namespace fopd::daemon {

namespace {

config::Section<NodeSettings> node_section() {
    config::Section<NodeSettings> section("node", "Who this node is and where it keeps its data.");
    section.field("name", &NodeSettings::name,
                  config::text({.length_max = 64, .charset = config::Charset::kName}),
                  "What other nodes and the log call it. Empty: the host's name.");
    section.field("data_dir", &NodeSettings::data_dir, config::path(),
                  "Where the daemon keeps its data: exists, writable for its user, on a local file "
                  "system.");
    section.field("drain_timeout", &NodeSettings::drain_timeout,
                  config::duration({.min = Duration{0}, .max = 24h}),
                  "How long a stop waits for what still runs.", {.reload = config::Reload::kLive});
    return section;
}

config::Section<LocalitySettings> locality_section() {
    config::Section<LocalitySettings> section(
        "localities", "The threads that do the work, each with a core and an io_uring of its own.");
    section.field("cores", &LocalitySettings::cores,
                  config::auto_or(config::integer<std::uint32_t>({.min = 1, .max = 1024})),
                  "How many. auto: half of the cores the process may use, at least one.");
    section.field(
        "buffers", &LocalitySettings::buffers_bytes,
        config::size({.min = 256ULL << 10, .max = 64ULL << 30}),
        "Memory for I/O of each locality, registered with the kernel. The memory lock limit "
        "(LimitMEMLOCK=) must allow it for all of them.");
    section.field("sqpoll", &LocalitySettings::sqpoll, config::boolean(),
                  "Whether a kernel thread takes submissions without system calls. It needs a core "
                  "of its own for each locality.");
    return section;
}

config::Section<AuthSettings> auth_section() {
    config::Section<AuthSettings> section("auth", "Who may talk to this node.");
    section.field("peer_key", &AuthSettings::peer_key, config::none_or(config::path()),
                  "The key all daemons of the cluster share: a file of 64 hexadecimal digits that "
                  "only its owner may read.");
    return section;
}

config::Section<AdminSettings> admin_section() {
    config::Section<AdminSettings> section("admin", "How the node is administered and watched.");
    section.field("socket", &AdminSettings::socket, config::path(),
                  "The UNIX socket fopctl talks to; its group may.");
    section.field("metrics", &AdminSettings::metrics, config::none_or(config::address()),
                  "Where GET /metrics is answered, in the OpenMetrics format; nothing else is.");
    return section;
}

config::Section<LogSettings> log_section() {
    config::Section<LogSettings> section("log", "What is logged, and how.");
    section.field("level", &LogSettings::level,
                  config::choice<core::Level>({{"trace", core::Level::kTrace},
                                               {"debug", core::Level::kDebug},
                                               {"info", core::Level::kInfo},
                                               {"warn", core::Level::kWarn},
                                               {"error", core::Level::kError}}),
                  "The least important events that are logged.", {.reload = config::Reload::kLive});
    section.field("format", &LogSettings::format,
                  config::auto_or(config::choice<LogFormat>({{"text", LogFormat::kText},
                                                             {"json", LogFormat::kJson},
                                                             {"journald", LogFormat::kJournald}})),
                  "auto: journal fields where standard error is the journal's, else text.");
    return section;
}

}  // namespace

config::Schema make_schema() {
    config::Schema schema;
    schema.add(node_section());
    schema.add(locality_section());
    schema.add(auth_section());
    schema.add(admin_section());
    schema.add(log_section());
    return schema;
}

}  // namespace fopd::daemon

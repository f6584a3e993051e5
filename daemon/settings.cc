#include "daemon/settings.h"

#include <map>
#include <string>
#include <string_view>

#include "config/section.h"
#include "config/types.h"
#include "devices/settings.h"
#include "fabric/settings.h"
#include "io_sched/settings.h"
#include "lrs/settings.h"
#include "objects/object_name.h"
#include "store/settings.h"

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
    section.field("receive_buffers", &LocalitySettings::receive_buffers,
                  config::integer<std::uint32_t>({.min = 16, .max = 65536}),
                  "Messages of 16 KiB that each locality can receive at a time, from all clients.");
    section.field("spin", &LocalitySettings::spin,
                  config::duration({.min = Duration{0}, .max = 1ms}),
                  "How long a locality looks for more work before it sleeps, as long as work keeps "
                  "coming and the process may use more cores than there are localities. 0: it "
                  "sleeps at once.");
    section.field("sqpoll", &LocalitySettings::sqpoll, config::boolean(),
                  "Whether a kernel thread takes submissions without system calls. It needs a core "
                  "of its own for each locality.");
    return section;
}

config::Section<AuthSettings> auth_section() {
    config::Section<AuthSettings> section("auth", "Who may talk to this node.");
    section.field("mode", &AuthSettings::mode,
                  config::choice<AuthSettings::Mode>({{"required", AuthSettings::Mode::kRequired},
                                                      {"none", AuthSettings::Mode::kNone}}),
                  "required: clients prove their identity. none: every client may do everything; "
                  "for tests.",
                  {.reload = config::Reload::kLive});
    section.field(
        "principals", &AuthSettings::principals, config::none_or(config::path()),
        "The clients that may connect, and their keys: a file that only its owner may read. "
        "It is read again at each reload. none: only peers may connect.",
        {.reload = config::Reload::kLive});
    section.field(
        "peer_key", &AuthSettings::peer_keys,
        config::one_or_more(config::path(),
                            {.length_max = 16, .doubles = config::ListRule::Doubles::kRefused}),
        "The key all daemons of the cluster share: a file of 64 hexadecimal digits that "
        "only its owner may read. A list while the key is changed: that of the current "
        "key, then those of previous ones that are still accepted.",
        {.reload = config::Reload::kLive});
    section.field(
        "issuer_public", &AuthSettings::issuer_public, config::none_or(config::path()),
        "The public key of the issuer of capability tokens: a file of 64 hexadecimal digits. "
        "none: tokens are refused.",
        {.reload = config::Reload::kLive});
    return section;
}

config::Section<AdminSettings> admin_section() {
    config::Section<AdminSettings> section("admin", "How the node is administered and watched.");
    section.field("socket", &AdminSettings::socket, config::path(),
                  "The UNIX socket fopctl talks to; its group may.");
    section.field("metrics", &AdminSettings::metrics, config::none_or(config::address()),
                  "Where GET /metrics is answered, for Prometheus; nothing else is.");
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
    section.field(
        "slow_fop", &LogSettings::slow_fop, config::duration({.min = 1ms, .max = 1h}),
        "A fop that took this long once it had its turn is logged, with the time it spent in "
        "each phase.",
        {.reload = config::Reload::kLive});
    section.field("format", &LogSettings::format,
                  config::auto_or(config::choice<LogFormat>({{"text", LogFormat::kText},
                                                             {"json", LogFormat::kJson},
                                                             {"journald", LogFormat::kJournald}})),
                  "auto: journal fields where standard error is the journal's, else text.");
    section.field(
        "audit", &LogSettings::audit, config::none_or(config::path()),
        "The file of the audit trail: administrative requests with their callers, and denied fops. "
        "A JSON object in each line. A file that was renamed or removed is made again. "
        "none: the trail is a part of the log, as events audit.*.");
    section.field("audit_changes", &LogSettings::audit_changes, config::boolean(),
                  "Whether the audit trail has each fop that changed an object, too.",
                  {.reload = config::Reload::kLive});
    return section;
}

// A pool's contents are identified by the pool's id, which is derived from its name; so ids must
// differ.
std::optional<config::Mistake> check_pools(const config::Snapshot& settings) {
    std::map<objects::PoolId, std::string_view> names;
    for (const auto& pool : settings.get<std::vector<devices::PoolSettings>>()) {
        const auto [other, is_new] = names.try_emplace(objects::pool_id(pool.name), pool.name);
        if (is_new) continue;
        return config::Mistake{.wrong = "pools " + std::string(other->second) + " and " +
                                        pool.name + " would have the same id",
                               .right = "another name for one of them"};
    }
    return std::nullopt;
}

std::optional<config::Mistake> check_disks(const config::Snapshot& settings) {
    std::string wrong = devices::check_devices(settings.get<std::vector<devices::DeviceSettings>>(),
                                               settings.get<std::vector<devices::PoolSettings>>());
    if (wrong.empty()) return std::nullopt;
    return config::Mistake{.wrong = std::move(wrong),
                           .right = "each device is of a pool in pools, and has a path of its own"};
}

}  // namespace

config::Schema make_schema() {
    config::Schema schema;
    schema.add(node_section());
    schema.add(fabric::fabric_section());
    schema.add(locality_section());
    schema.add(auth_section());
    schema.add(admin_section());
    schema.add(log_section());
    schema.add(lrs::lrs_section());
    schema.add(store::store_section());
    schema.add(io_sched::io_sched_section());
    schema.add(devices::pools_section());
    schema.add(devices::devices_section());
    schema.rule("pools", &check_pools);
    schema.rule("devices", &check_disks);
    return schema;
}

}  // namespace fopd::daemon

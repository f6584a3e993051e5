#include "daemon/settings.h"

#include <map>
#include <string_view>

#include "config/section.h"
#include "config/types.h"
#include "daemon/configuration.h"
#include "daemon/listen_socket.h"
#include "devices/settings.h"
#include "eh/settings.h"
#include "fabric/settings.h"
#include "io_sched/settings.h"
#include "library/settings.h"
#include "lrs/settings.h"
#include "objects/object_name.h"
#include "store/settings.h"

namespace fopd::daemon {

namespace {

config::Section<NodeSettings> node_section() {
    config::Section<NodeSettings> section("node", "The name of this node, and its files.");
    section.field(
        "name", &NodeSettings::name,
        config::text({.length_max = 64, .charset = config::Charset::kName}),
        "The name of the node in its log and for other nodes. Empty: the name of the host.");
    section.field(
        "data_dir", &NodeSettings::data_dir, config::path(),
        "The data directory: must exist on a local file system, writable for the daemon's user.");
    section.field("drain_timeout", &NodeSettings::drain_timeout,
                  config::duration({.min = Duration{0}, .max = 24h}),
                  "How long a stop waits for running fops.", {.reload = config::Reload::kLive});
    return section;
}

config::Section<LocalitySettings> locality_section() {
    config::Section<LocalitySettings> section(
        "localities",
        "The threads that execute fops, each with a core and an io_uring of its own.");
    section.field(
        "cores", &LocalitySettings::cores,
        config::auto_or(config::integer<std::uint32_t>({.min = 1, .max = 1024})),
        "The number of localities. auto: half of the cores that the process may use, at least "
        "one.");
    section.field("buffers", &LocalitySettings::buffers_bytes,
                  config::size({.min = 256ULL << 10, .max = 64ULL << 30}),
                  "I/O memory of each locality, registered with the kernel. The limit of locked "
                  "memory (LimitMEMLOCK=) must hold that of all localities.");
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
    config::Section<AuthSettings> section("auth", "Which clients may connect, and their keys.");
    section.field("mode", &AuthSettings::mode,
                  config::choice<AuthSettings::Mode>({{"required", AuthSettings::Mode::kRequired},
                                                      {"none", AuthSettings::Mode::kNone}}),
                  "required: clients authenticate with a key. none: every client may do "
                  "everything; for tests.",
                  {.reload = config::Reload::kLive});
    section.field(
        "principals", &AuthSettings::principals, config::none_or(config::path()),
        "The clients that may connect, and their keys: a file that only its owner may read. "
        "It is read again at each reload. none: no client may connect, unless mode is none.",
        {.reload = config::Reload::kLive});
    section.field(
        "peer_key", &AuthSettings::peer_keys,
        config::one_or_more(config::path(),
                            {.length_max = 16, .doubles = config::ListRule::Doubles::kRefused}),
        "The key that all daemons of the cluster share: a file of 64 hexadecimal digits that only "
        "its owner may read. While the key is changed, a list of files: first that of the current "
        "key, then those of previous keys that are still accepted.",
        {.reload = config::Reload::kLive});
    section.field(
        "issuer_public", &AuthSettings::issuer_public, config::none_or(config::path()),
        "The public key of the issuer of capability tokens: a file of 64 hexadecimal digits that "
        "nobody but its owner may read or write: whoever can change it decides which tokens are "
        "accepted. none: tokens are refused.",
        {.reload = config::Reload::kLive});
    return section;
}

config::Section<AdminSettings> admin_section() {
    config::Section<AdminSettings> section("admin", "Administration and metrics.");
    section.field(
        "socket", &AdminSettings::socket, config::path(),
        "The UNIX socket that fopctl connects to, open to its group. Its path has at most 107 "
        "bytes.");
    section.field("metrics", &AdminSettings::metrics, config::none_or(config::address()),
                  "The address that serves /metrics, for Prometheus, and no other path.");
    section.check([](const AdminSettings& settings, config::Complaints& complaints) {
        const std::size_t size = settings.socket.size();
        if (size <= kUnixPathBytesMax) return;
        complaints.add("socket", "it has " + std::to_string(size) + " bytes",
                       "the path of a socket has at most " + std::to_string(kUnixPathBytesMax));
    });
    return section;
}

config::Section<LogSettings> log_section() {
    config::Section<LogSettings> section("log", "The log and the audit trail.");
    section.field("level", &LogSettings::level,
                  config::choice<core::Level>({{"trace", core::Level::kTrace},
                                               {"debug", core::Level::kDebug},
                                               {"info", core::Level::kInfo},
                                               {"warn", core::Level::kWarn},
                                               {"error", core::Level::kError}}),
                  "The lowest level of events that are logged.", {.reload = config::Reload::kLive});
    section.field(
        "slow_fop", &LogSettings::slow_fop, config::duration({.min = 1ms, .max = 1h}),
        "A fop that took longer than this, from its arrival to its reply, is logged, with "
        "what its time was spent on.",
        {.reload = config::Reload::kLive});
    section.field("format", &LogSettings::format,
                  config::auto_or(config::choice<LogFormat>({{"text", LogFormat::kText},
                                                             {"json", LogFormat::kJson},
                                                             {"journald", LogFormat::kJournald}})),
                  "auto: journal fields if standard error is connected to the journal, else text.");
    section.field(
        "audit", &LogSettings::audit, config::none_or(config::path()),
        "The file of the audit trail: administrative requests with their callers, and denied fops. "
        "Each line is a JSON object. A file that was renamed or removed is made anew. none: the "
        "trail is a part of the log, as events audit.*.");
    section.field(
        "audit_changes", &LogSettings::audit_changes, config::boolean(),
        "Whether the audit trail also has each fop that changed an object. If the trail is "
        "a part of the log, these need the log.level info or a lower one.",
        {.reload = config::Reload::kLive});
    return section;
}

// A pool's contents are identified by the pool's id, which is derived from its name; so ids must
// differ.
std::vector<config::Mistake> check_pools(const config::Snapshot& settings) {
    std::vector<config::Mistake> mistakes;
    std::map<objects::PoolId, std::string_view> names;
    for (const auto& pool : settings.get<std::vector<devices::PoolSettings>>()) {
        const auto [other, is_new] = names.try_emplace(objects::pool_id(pool.name), pool.name);
        if (is_new) continue;
        mistakes.push_back({.wrong = "pools " + std::string(other->second) + " and " + pool.name +
                                     " would have the same id",
                            .right = "another name for one of them"});
    }
    return mistakes;
}

std::vector<config::Mistake> check_epochs(const config::Snapshot& settings) {
    const auto& epochs = settings.get<eh::EpochSettings>();
    const auto& listen = settings.get<fabric::FabricSettings>().listen;
    if (epochs.kind == eh::EpochSettings::Kind::kLocal) return {};
    auto mistakes = eh::check_epochs(epochs, {.name = node_name(settings), .listen = listen});
    if (settings.get<AuthSettings>().peer_keys.empty()) {
        mistakes.push_back({.wrong = "kind is peers, and there is no auth.peer_key",
                            .right = "write auth.peer_key, the file of the key that all have",
                            .key = "kind"});
    }
    if (listen.empty()) {
        mistakes.push_back({.wrong = "kind is peers, and fabric.listen has no address",
                            .right = "write the address at which the others reach this daemon",
                            .key = "kind"});
        return mistakes;
    }
    const std::string& own_scheme = listen.front().scheme;
    const auto check_scheme = [&](const std::string& scheme, const std::string& key) {
        if (own_scheme == scheme) return;
        mistakes.push_back({.wrong = "this daemon listens at " + own_scheme +
                                     "://, and connects to no " + scheme + "://",
                            .right = "write an address with " + own_scheme + "://",
                            .key = key});
    };
    for (std::size_t i = 0; i < epochs.members.size(); ++i) {
        check_scheme(epochs.members[i].address.scheme,
                     "members[" + std::to_string(i) + "].address");
    }
    if (epochs.address) check_scheme(epochs.address->scheme, "address");
    return mistakes;
}

std::vector<config::Mistake> check_staging(const config::Snapshot& settings) {
    return devices::check_staging(settings.get<std::vector<devices::PoolSettings>>());
}

std::vector<config::Mistake> check_libraries(const config::Snapshot& settings) {
    std::vector<std::string> served;
    for (const auto& each : settings.get<std::vector<library::LibrarySettings>>()) {
        served.push_back(each.pool);
    }
    return devices::check_libraries(settings.get<std::vector<devices::PoolSettings>>(), served);
}

std::vector<config::Mistake> check_library_pools(const config::Snapshot& settings) {
    return library::check_pools(settings.get<std::vector<library::LibrarySettings>>(),
                                settings.get<std::vector<devices::PoolSettings>>());
}

// Limits can change at run time, and the models of libraries cannot: after a reload that changes
// both, drives without limits may be in use until the restart.
std::vector<config::Mistake> check_drive_limits(const config::Snapshot& settings) {
    std::vector<config::Mistake> mistakes;
    const io_sched::TapeSettings& tape = settings.get<io_sched::IoSchedSettings>().tape;
    for (const auto& each : settings.get<std::vector<library::LibrarySettings>>()) {
        const bool is_known = each.kind == library::LibraryKind::kVirtual;
        if (!is_known || !tape.lacks_limits_for(each.model)) continue;
        mistakes.push_back(
            {.wrong = "there are no limits for " + each.model + ", the drives of library " +
                      each.name + ", but for others",
             .right = "write an item with technology " + each.model + ", or no limits at all",
             .key = "tape.fair_share_limits"});
    }
    return mistakes;
}

std::vector<config::Mistake> check_disks(const config::Snapshot& settings) {
    std::vector<config::Mistake> mistakes;
    for (std::string& wrong :
         devices::check_devices(settings.get<std::vector<devices::DeviceSettings>>(),
                                settings.get<std::vector<devices::PoolSettings>>())) {
        mistakes.push_back(
            {.wrong = std::move(wrong),
             .right = "each device is of a disk pool in pools, and has a path of its own"});
    }
    return mistakes;
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
    schema.add(eh::epoch_section());
    schema.add(store::store_section());
    schema.add(io_sched::io_sched_section());
    schema.add(devices::pools_section());
    schema.add(devices::devices_section());
    schema.add(library::libraries_section());
    schema.rule("eh", {"node", "auth", "fabric"}, &check_epochs);
    schema.rule("pools", {}, &check_pools);
    schema.rule("pools", {}, &check_staging);
    schema.rule("pools", {"libraries"}, &check_libraries);
    schema.rule("libraries", {"pools"}, &check_library_pools);
    schema.rule("io_sched", {"libraries"}, &check_drive_limits);
    schema.rule("devices", {"pools"}, &check_disks);
    return schema;
}

}  // namespace fopd::daemon

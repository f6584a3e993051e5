#include "daemon/node_reload.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

namespace fopd::daemon {

namespace {

// For the audit trail: the file that `key` names has another content.
config::Change new_content(const std::string& key) {
    return {.path = key,
            .old_value = "the file's old content",
            .new_value = "the file's new content",
            .reload = config::Reload::kLive};
}

config::Changes joined(config::Changes changes, const config::Changes& more) {
    changes.insert(changes.end(), more.begin(), more.end());
    return changes;
}

}  // namespace

config::Changes NodeReload::Reloaded::for_audit() const {
    return joined(changes, principals);
}

config::Changes NodeReload::ReloadedKeys::for_audit() const {
    return joined(changes, principals);
}

// The start has read the configuration.
NodeReload::NodeReload(const Parts& parts) : parts_(parts) {
    note_outcome();
}

void NodeReload::note_outcome() {
    is_successful_.set(problems_.empty() ? 1 : 0);
    if (!problems_.empty()) return;
    const std::int64_t now_ns = parts_.world.clock.wall().unix_ns;
    succeeded_at_s_.set(static_cast<std::uint64_t>(now_ns / 1'000'000'000));
}

void NodeReload::collect(core::MetricSink& sink) const {
    sink.gauge("fopd_config_last_reload_successful",
               "Whether the last reload of the configuration made all changes.", {},
               static_cast<double>(is_successful_.get()));
    sink.gauge("fopd_config_last_reload_success_timestamp_seconds",
               "When the configuration was last read with success. Unix time.", {},
               static_cast<double>(succeeded_at_s_.get()));
}

Task<NodeReload::Outcome> NodeReload::run() {
    const auto turn = co_await parts_.turn.begin();
    if (!turn) co_return std::unexpected(turn.error());
    parts_.world.manager.reloading();
    DeviceRequests::Plan plan;
    auto reloaded = reload_settings(&plan);
    if (reloaded) {
        problems_.clear();
        auto followed = co_await parts_.devices.follow(&plan);
        for (const DeviceOutcome& each : followed) {
            if (each.done()) continue;
            const bool stays = each.kind == DeviceOutcome::Kind::kNotRemoved;
            problems_.push_back("device " + each.device +
                                (stays ? " is not removed: " : " is not added: ") + each.words);
        }
        reloaded->devices = std::move(followed);
    } else {
        problems_ = reloaded.error().problems;
    }
    note_outcome();
    parts_.world.manager.ready();
    parts_.turn.end();
    co_return std::move(reloaded);
}

NodeReload::Outcome NodeReload::reload_settings(DeviceRequests::Plan* plan) {
    using Devices = std::vector<devices::DeviceSettings>;
    Configuration& configuration = parts_.world.configuration;
    plan->before = configuration.current()->get<Devices>();
    AccessPtr access;
    bool needs_restart = false;
    auto reloaded = configuration.reload([&, this](const config::Snapshot& next) {
        plan->wanted = next.get<Devices>();
        auto conflicts = check(next, &access);
        needs_restart = conflicts.need_restart && !conflicts.problems.empty();
        return std::move(conflicts.problems);
    });
    if (!reloaded) {
        reloaded.error().needs_restart = needs_restart;
        for (const std::string& problem : reloaded.error().problems) {
            emit_each(parts_.world.events, core::Level::kError, "daemon.config_refused",
                      {{"problem", std::string_view(problem)}});
        }
        return std::unexpected(std::move(reloaded.error()));
    }
    Reloaded all;
    static_cast<Configuration::Reloaded&>(all) = *std::move(reloaded);
    for (const std::string& key : changed_files(*parts_.access.current(), *access)) {
        // The key is listed already if it also names another file now.
        const bool is_there =
            std::ranges::find(all.changes, key, &config::Change::path) != all.changes.end();
        if (!is_there) all.changes.push_back(new_content(key));
    }
    all.principals = changed_principals(*parts_.access.current(), *access);
    apply(std::move(access));
    report(all);
    return all;
}

DeviceRequests::Conflicts NodeReload::check(const config::Snapshot& next, AccessPtr* access) const {
    DeviceRequests::Conflicts conflicts = parts_.devices.check_open_disks(next);
    // A bad access file that the configuration names changes nothing either.
    auto loaded = parts_.access.load(next);
    if (loaded) {
        *access = *std::move(loaded);
    } else {
        conflicts.problems.insert(conflicts.problems.begin(), loaded.error().message);
        conflicts.need_restart = false;
    }
    return conflicts;
}

// The settings in use, and the file of principals that the configuration names if none is in use.
AuthSettings NodeReload::next_auth() const {
    AuthSettings auth = parts_.world.configuration.current()->get<AuthSettings>();
    if (auth.principals) return auth;
    const auto next = parts_.world.configuration.read();
    if (next) auth.principals = (*next)->get<AuthSettings>().principals;
    return auth;
}

NodeReload::PrincipalsFiles NodeReload::principals_files() const {
    const auto& in_use = parts_.world.configuration.current()->get<AuthSettings>().principals;
    return {.in_use = in_use.value_or(""), .configured = next_auth().principals.value_or("")};
}

std::expected<NodeReload::ReloadedKeys, Configuration::Refused> NodeReload::reload_keys() {
    if (!parts_.life.serving()) {
        return std::unexpected(Configuration::Refused{
            .busy = true,
            .problems = {std::string("the node is ") + to_string(parts_.life.state())}});
    }
    Configuration& configuration = parts_.world.configuration;
    const AuthSettings auth = next_auth();
    const config::SnapshotPtr next = configuration.current()->with(auth);
    auto access = parts_.access.load(*next);
    if (!access) {
        emit_each(parts_.world.events, core::Level::kError, "daemon.keys_refused",
                  {{"problem", std::string_view(access.error().message)}});
        return std::unexpected(
            Configuration::Refused{.busy = false, .problems = {access.error().message}});
    }
    ReloadedKeys reloaded{.principals = changed_principals(*parts_.access.current(), **access)};
    for (const std::string& key : changed_files(*parts_.access.current(), **access))
        reloaded.changes.push_back(new_content(key));
    configuration.set_auth(auth);
    parts_.access.use(*std::move(access));
    parts_.updates.send();
    parts_.access.report();
    parts_.rules.note();
    parts_.layout.apply_quotas();
    for (const config::Change& change : reloaded.changes) {
        emit_each(parts_.world.events, core::Level::kInfo, "daemon.config_changed",
                  {{"key", std::string_view(change.path)}});
    }
    emit_each(parts_.world.events, core::Level::kInfo, "daemon.keys_reloaded",
              {{"changed", static_cast<std::uint64_t>(reloaded.changes.size())}});
    return reloaded;
}

void NodeReload::apply(AccessPtr access) {
    parts_.access.use(std::move(access));
    parts_.world.apply_settings();
    parts_.updates.send();
    parts_.access.report();
    parts_.rules.note();
    parts_.layout.apply_quotas();
}

void NodeReload::report(const Configuration::Reloaded& reloaded) const {
    core::EventSink& events = parts_.world.events;
    const std::vector<std::string> changed = keys_in_force(reloaded.changes);
    for (const std::string& key : changed) {
        emit_each(events, core::Level::kInfo, "daemon.config_changed",
                  {{"key", std::string_view(key)}});
    }
    for (const std::string& key : reloaded.needs_restart) {
        emit_each(events, core::Level::kWarn, "daemon.config_needs_restart",
                  {{"key", std::string_view(key)}});
    }
    emit_each(events, core::Level::kInfo, "daemon.reloaded",
              {{"config_hash", std::string_view(reloaded.hash)},
               {"changed", static_cast<std::uint64_t>(changed.size())}});
}

}  // namespace fopd::daemon

// The reload of a node's configuration while it runs.
#include <algorithm>
#include <utility>

#include "daemon/node.h"

namespace fopd::daemon {

Task<Node::ReloadResult> Node::reload() {
    const auto turn = co_await turn_.begin();
    if (!turn) co_return std::unexpected(turn.error());
    world_.manager.reloading();
    DeviceRequests::Plan plan{
        .before = world_.configuration.current()->get<std::vector<devices::DeviceSettings>>(),
        .wanted = {}};
    auto reloaded = reload_settings(&plan.wanted);
    if (reloaded) reloaded->devices = co_await device_requests_.follow(&plan);
    world_.manager.ready();
    turn_.end();
    co_return std::move(reloaded);
}

Node::ReloadResult Node::reload_settings(std::vector<devices::DeviceSettings>* wanted) {
    AccessPtr access;
    const auto check = [this, wanted, &access](const config::Snapshot& next) {
        // A bad access file that the configuration names changes nothing either.
        auto loaded = access_.load(next);
        if (!loaded) return std::vector{loaded.error().message};
        access = *std::move(loaded);
        *wanted = next.get<std::vector<devices::DeviceSettings>>();
        return device_requests_.check_open_disks(next);
    };
    auto reloaded = world_.configuration.reload(check);
    if (!reloaded) {
        for (const std::string& problem : reloaded.error().problems) {
            emit_each(world_.events, core::Level::kError, "daemon.config_refused",
                      {{"problem", std::string_view(problem)}});
        }
        return std::unexpected(std::move(reloaded.error()));
    }
    for (std::string& key : changed_files(*access_.current(), *access)) {
        // The key is listed already if it also names another file now.
        const bool is_there = std::ranges::find(reloaded->changed, key) != reloaded->changed.end();
        if (!is_there) reloaded->changed.push_back(std::move(key));
    }
    access_.use(std::move(access));
    world_.apply_settings();
    updates_.send();
    access_.report();
    layout_.apply_quotas();
    for (const std::string& key : reloaded->changed) {
        emit_each(world_.events, core::Level::kInfo, "daemon.config_changed",
                  {{"key", std::string_view(key)}});
    }
    for (const std::string& key : reloaded->needs_restart) {
        emit_each(world_.events, core::Level::kWarn, "daemon.config_needs_restart",
                  {{"key", std::string_view(key)}});
    }
    emit_each(world_.events, core::Level::kInfo, "daemon.reloaded",
              {{"config_hash", std::string_view(reloaded->hash)},
               {"changed", static_cast<std::uint64_t>(reloaded->changed.size())}});
    Reloaded all;
    static_cast<Configuration::Reloaded&>(all) = *std::move(reloaded);
    return all;
}

}  // namespace fopd::daemon

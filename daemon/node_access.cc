#include "daemon/node_access.h"

#include "devices/settings.h"

namespace fopd::daemon {

Started<AccessPtr> NodeAccess::load(const config::Snapshot& next) const {
    auto loaded = world_.load_access(next);
    if (!loaded) return loaded;
    const auto& pools = world_.configuration.current()->get<std::vector<devices::PoolSettings>>();
    const auto checked = check_quotas(**loaded, pools);
    if (!checked) return std::unexpected(checked.error());
    return loaded;
}

std::string_view NodeAccess::warning() const {
    if (current_ == nullptr || addresses_.empty()) return {};
    if (current_->open_to_all) {
        return "auth.mode is none: every client that reaches this node may do everything";
    }
    return current_->keys->size() == 0 ? "auth.principals names nobody: no client can connect" : "";
}

void NodeAccess::report() const {
    const std::string_view warning = this->warning();
    if (warning.empty()) return;
    emit(world_.events, core::Level::kWarn,
         current_->open_to_all ? "daemon.no_authentication" : "daemon.nobody_can_connect",
         {{"reason", warning}});
}

}  // namespace fopd::daemon

#include "daemon/configuration.h"

#include <algorithm>
#include <array>

#include <unistd.h>

namespace fopd::daemon {

std::expected<std::unique_ptr<Configuration>, config::Problems> Configuration::open(
    std::string file, Load load) {
    auto first = load();
    if (!first) return std::unexpected(std::move(first.error()));
    return std::unique_ptr<Configuration>(
        new Configuration(std::move(file), std::move(load), std::move(*first)));
}

std::expected<config::SnapshotPtr, Configuration::Refused> Configuration::read() const {
    auto next = load_();
    if (next) return *std::move(next);
    Refused refused;
    for (const config::Problem& problem : next.error()) {
        refused.problems.push_back(to_string(problem));
    }
    return std::unexpected(std::move(refused));
}

std::expected<Configuration::Reloaded, Configuration::Refused> Configuration::reload(
    const Check& check) {
    const auto next = read();
    if (!next) return std::unexpected(next.error());
    if (auto problems = check(**next); !problems.empty()) {
        return std::unexpected(Refused{.busy = false, .problems = std::move(problems)});
    }
    const core::Level level_before = log_level();
    const config::Current::Applied applied = current_.apply(*next);
    log_level_by_hand_.reset();

    Reloaded reloaded;
    for (const config::Change& change : applied.live) reloaded.changed.push_back(change.path);
    const bool listed = std::ranges::find(reloaded.changed, "log.level") != reloaded.changed.end();
    if (log_level() != level_before && !listed) reloaded.changed.emplace_back("log.level");
    waiting_.clear();
    for (const config::Change& change : applied.waiting) waiting_.push_back(change.path);
    reloaded.needs_restart = waiting_;
    reloaded.hash = hash();
    return reloaded;
}

core::Level Configuration::log_level() const {
    return log_level_by_hand_.value_or(current_.snapshot()->get<LogSettings>().level);
}

std::vector<std::string> Configuration::differing_keys() const {
    if (log_level() == current_.snapshot()->get<LogSettings>().level) return {};
    return {"log.level"};
}

std::string node_name(const config::Snapshot& snapshot) {
    const std::string& name = snapshot.get<NodeSettings>().name;
    if (!name.empty()) return name;
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) return "unnamed";
    return host.data();
}

}  // namespace fopd::daemon

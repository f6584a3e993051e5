#include "daemon/configuration.h"

#include <algorithm>
#include <array>

#include <unistd.h>

#include "config/file.h"
#include "config/section_text.h"
#include "config/text_check.h"
#include "config/units.h"
#include "core/ensure.h"
#include "daemon/log_format.h"

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

std::vector<std::string> keys_in_force(const config::Changes& changes) {
    std::vector<std::string> keys;
    for (const config::Change& each : changes) {
        if (each.reload == config::Reload::kLive) keys.push_back(each.path);
    }
    return keys;
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
    lrs_in_file_ = (*next)->get<lrs::LrsSettings>();

    Reloaded reloaded;
    reloaded.changes = applied.live;
    const bool listed = std::ranges::find(reloaded.changes, "log.level", &config::Change::path) !=
                        reloaded.changes.end();
    if (log_level() != level_before && !listed) {
        reloaded.changes.push_back({.path = "log.level",
                                    .old_value = std::string(level_name(level_before)),
                                    .new_value = std::string(level_name(log_level())),
                                    .reload = config::Reload::kLive});
    }
    waiting_.clear();
    for (const config::Change& change : applied.waiting) {
        waiting_.push_back(change.path);
        reloaded.changes.push_back(change);
    }
    reloaded.needs_restart = waiting_;
    reloaded.hash = hash();
    return reloaded;
}

core::Level Configuration::log_level() const {
    return log_level_by_hand_.value_or(current_.snapshot()->get<LogSettings>().level);
}

std::vector<std::string> Configuration::differing_keys() const {
    std::vector<std::string> keys = differing_lrs_keys();
    const bool is_other_level = log_level() != current_.snapshot()->get<LogSettings>().level;
    if (is_other_level) keys.emplace_back("log.level");
    return keys;
}

// -- the request scheduler --

config::Changes Configuration::set_lrs(lrs::LrsSettings settings) {
    const config::Current::Applied applied =
        current_.apply(current_.snapshot()->with(std::move(settings)));
    ENSURE(applied.waiting.empty());
    return applied.live;
}

void Configuration::set_auth(AuthSettings settings) {
    const config::Current::Applied applied =
        current_.apply(current_.snapshot()->with(std::move(settings)));
    ENSURE(applied.waiting.empty());
}

std::vector<std::string> Configuration::differing_lrs_keys() const {
    return lrs::keys_that_differ(lrs_in_file_, current_.snapshot()->get<lrs::LrsSettings>());
}

std::expected<Configuration::Draft, std::string> Configuration::draft_lrs() const {
    auto before = config::read_file(file_);
    if (!before) return std::unexpected(file_ + ": " + before.error().wrong);
    const config::Schema schema = make_schema();
    const auto now = schema.load_text(*before, file_);
    if (!now) return std::unexpected(to_string(now.error().front()));
    const auto theirs = lrs::keys_that_differ(lrs_in_file_, (*now)->get<lrs::LrsSettings>());
    if (!theirs.empty()) {
        return std::unexpected(file_ + ": " + config::joined(theirs) +
                               " was changed since it was read; put it right there, and reload");
    }
    const auto& in_force = current_.snapshot()->get<lrs::LrsSettings>();
    const auto after = config::replace_section(*before, "lrs", lrs::to_yaml(in_force));
    if (!after) return std::unexpected(file_ + ": " + after.error());
    if (after->size() > config::kFileSizeMax) {
        return std::unexpected(file_ + ": with so many rules it is longer than " +
                               config::format_size(config::kFileSizeMax) +
                               ", and could not be read again; keep them in a file of their own");
    }
    const auto then = schema.load_text(*after, file_);
    const bool is_right =
        then && config::print_effective(**then) == config::print_effective(*(*now)->with(in_force));
    if (!is_right) {
        return std::unexpected(file_ +
                               ": its section lrs cannot be told from what is around it; "
                               "write its sections below each other");
    }
    return Draft{.before = *std::move(before), .after = *after};
}

bool Configuration::note_lrs_saved() {
    const auto now = read();
    if (!now) return false;
    const auto& in_file = (*now)->get<lrs::LrsSettings>();
    const auto& in_force = current_.snapshot()->get<lrs::LrsSettings>();
    if (!lrs::keys_that_differ(in_file, in_force).empty()) return false;
    lrs_in_file_ = in_file;
    return true;
}

std::string node_name(const config::Snapshot& snapshot) {
    const std::string& name = snapshot.get<NodeSettings>().name;
    if (!name.empty()) return name;
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) return "unnamed";
    return host.data();
}

}  // namespace fopd::daemon

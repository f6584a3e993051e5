#include "daemon/configuration.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <unistd.h>

#include "config/file.h"
#include "config/section_text.h"
#include "config/text_check.h"
#include "config/units.h"
#include "config/yaml_reader.h"
#include "core/ensure.h"
#include "daemon/log_format.h"

namespace fopd::daemon {

namespace {

constexpr const char* kIoSched = "io_sched";

// The value at a path of keys in a map; null if there is none.
config::Node* value_at(config::Node* map, std::string_view path) {
    while (map != nullptr) {
        const std::size_t length = std::min(path.find('.'), path.size());
        const auto entry =
            std::ranges::find(map->entries, path.substr(0, length), &config::NodeEntry::key);
        map = entry == map->entries.end() ? nullptr : &entry->value;
        if (length == path.size()) break;
        path.remove_prefix(length + 1);
    }
    return map;
}

// One value in YAML, and nothing else.
std::optional<config::Node> parse_value(const std::string& text) {
    config::Problems problems;
    const auto root = config::read_yaml("value: " + text + "\n", problems);
    if (!root || !problems.empty() || root->entries.size() != 1) return std::nullopt;
    return root->entries.front().value;
}

void list_values(const config::Node& map, const std::string& path,
                 std::vector<SectionValue>& values) {
    for (const config::NodeEntry& each : map.entries) {
        const std::string key = path.empty() ? each.key : path + "." + each.key;
        if (each.value.kind == config::Node::Kind::kMap) {
            list_values(each.value, key, values);
        } else {
            values.push_back({.key = key, .value = to_line(each.value)});
        }
    }
}

std::unexpected<Configuration::Refused> not_valid(const std::string& problem) {
    return std::unexpected(Configuration::Refused{.problems = {problem}});
}

// The whole configuration in force as a tree.
config::Node tree_of(const config::Snapshot& snapshot) {
    config::Problems problems;
    auto root = config::read_yaml(config::print_effective(snapshot), problems);
    ENSURE(root.has_value());
    return *std::move(root);
}

}  // namespace

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
    io_sched_in_file_ = (*next)->get<io_sched::IoSchedSettings>();

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
    std::ranges::copy(differing_io_sched_keys(), std::back_inserter(keys));
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
                               ": the section lrs shares lines with other settings, and cannot be "
                               "replaced; write each section on lines of its own");
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

// -- the I/O schedulers --

// The values go through the checks of a file.
std::expected<config::Changes, Configuration::Refused> Configuration::set_io_sched(
    std::span<const SectionValue> values) {
    config::Node root = tree_of(*current_.snapshot());
    config::Node* const section = value_at(&root, kIoSched);
    ENSURE(section != nullptr);
    for (const SectionValue& each : values) {
        const std::string key = kIoSched + ("." + each.key);
        config::Node* const node = value_at(section, each.key);
        if (node == nullptr || node->kind == config::Node::Kind::kMap) {
            std::vector<std::string> known;
            for (const SectionValue& other : io_sched_values()) known.push_back(other.key);
            return not_valid(key + ": there is no such key; the keys are " + config::joined(known));
        }
        auto value = parse_value(each.value);
        if (!value) return not_valid(key + ": not a value");
        *node = *std::move(value);
    }
    const auto next = make_schema().load_text(config::to_yaml(root), file_);
    if (!next) {
        Refused refused;
        for (const config::Problem& each : next.error()) {
            refused.problems.push_back(each.key + ": " + each.wrong + ", " + each.right);
        }
        return std::unexpected(std::move(refused));
    }
    const auto& wanted = (*next)->get<io_sched::IoSchedSettings>();
    const config::SnapshotPtr with = current_.snapshot()->with(wanted);
    for (const config::Change& each : config::merge(current_.snapshot(), with).changes) {
        if (each.reload == config::Reload::kLive) continue;
        return not_valid(each.path + ": it cannot change without a restart");
    }
    return current_.apply(with).live;
}

std::vector<SectionValue> Configuration::io_sched_values() const {
    config::Node root = tree_of(*current_.snapshot());
    std::vector<SectionValue> values;
    list_values(*value_at(&root, kIoSched), "", values);
    return values;
}

std::vector<std::string> Configuration::differing_io_sched_keys() const {
    const config::SnapshotPtr& current = current_.snapshot();
    return keys_in_force(config::merge(current, current->with(io_sched_in_file_)).changes);
}

std::string node_name(const config::Snapshot& snapshot) {
    const std::string& name = snapshot.get<NodeSettings>().name;
    if (!name.empty()) return name;
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) return "unnamed";
    return host.data();
}

}  // namespace fopd::daemon

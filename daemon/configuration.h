#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/current.h"
#include "config/schema.h"
#include "core/events.h"
#include "daemon/settings.h"
#include "io_sched/settings.h"
#include "lrs/settings.h"

namespace fopd::daemon {

// The keys of the changes that are in force now, and do not wait for a restart.
std::vector<std::string> keys_in_force(const config::Changes& changes);

// A key of a section, as a path in it such as "tape.read_algo", and its value as YAML on one line.
struct SectionValue {
    std::string key;
    std::string value;
};

// The configuration of one node over its life: the settings that were loaded, those in force, and
// those that differ from the file. Belongs to the control thread.
class Configuration {
public:
    // Loads the newest state of the source: a file, or a text in the simulated world.
    using Load = std::function<std::expected<config::SnapshotPtr, config::Problems>()>;

    // `file` is the source's name in status and log.
    static std::expected<std::unique_ptr<Configuration>, config::Problems> open(std::string file,
                                                                                Load load);

    const config::SnapshotPtr& current() const { return current_.snapshot(); }
    const std::string& file() const { return file_; }
    std::string hash() const { return config::hash(*current_.snapshot()); }

    struct Reloaded {
        // The changed settings: those in force now, and those that this reload has found and that
        // wait for a restart.
        config::Changes changes{};
        // The keys that differ from the file and wait for a restart, also from earlier reloads.
        std::vector<std::string> needs_restart;
        std::string hash;
    };
    struct Refused {
        bool busy = false;  // Try again later; nothing is wrong with the file.
        // The rule, setting or device named in the request does not exist.
        bool is_unknown = false;
        // The file is valid, but the node cannot follow it without a restart.
        bool needs_restart = false;
        std::vector<std::string> problems;
    };
    // Loads the source again and applies all settings that can change at run time, at once. A bad
    // source changes nothing. Values that were set by hand until the next reload are reset. `check`
    // returns further problems of the new configuration.
    using Check = std::function<std::vector<std::string>(const config::Snapshot& next)>;
    std::expected<Reloaded, Refused> reload(const Check& check);
    // Loads the source as it is now. Changes nothing.
    std::expected<config::SnapshotPtr, Refused> read() const;

    // The log level in force. set_log_level() sets another one until the next reload.
    core::Level log_level() const;
    void set_log_level(core::Level level) { log_level_by_hand_ = level; }

    // Applies other settings of the request scheduler until the next reload or restart, and returns
    // what changed. REQUIRES: the settings are valid, as if read from the file.
    config::Changes set_lrs(lrs::LrsSettings settings);
    // Applies other values of the section `io_sched` until the next reload or restart, all or none,
    // and returns what changed.
    std::expected<config::Changes, Refused> set_io_sched(std::span<const SectionValue> values);
    // The values of the section `io_sched` in force, in the order of the sample configuration.
    std::vector<SectionValue> io_sched_values() const;
    // The keys of the section `io_sched` whose value in force differs from the file's.
    std::vector<std::string> differing_io_sched_keys() const;
    // Applies another section `auth` until the next reload or restart. REQUIRES: as for
    // set_lrs().
    void set_auth(AuthSettings settings);
    // The request scheduler's keys whose value in force differs from the file's.
    std::vector<std::string> differing_lrs_keys() const;
    // The file's text with the request scheduler's settings in force, or why that text cannot be
    // made.
    struct Draft {
        std::string before;  // The text of the file.
        std::string after;
    };
    std::expected<Draft, std::string> draft_lrs() const;
    // Called after an administrator has replaced the file with the draft. Returns false if the file
    // says something else.
    bool note_lrs_saved();

    // Keys whose value in force was set by hand.
    std::vector<std::string> differing_keys() const;
    const std::vector<std::string>& keys_waiting_for_restart() const { return waiting_; }

private:
    Configuration(std::string file, Load load, config::SnapshotPtr first)
        : file_(std::move(file)),
          load_(std::move(load)),
          lrs_in_file_(first->get<lrs::LrsSettings>()),
          io_sched_in_file_(first->get<io_sched::IoSchedSettings>()),
          current_(std::move(first)) {}

    const std::string file_;
    const Load load_;
    // The sections as last read from the file.
    lrs::LrsSettings lrs_in_file_;
    io_sched::IoSchedSettings io_sched_in_file_;
    config::Current current_;
    std::vector<std::string> waiting_;
    std::optional<core::Level> log_level_by_hand_;
};

// The node's name: as configured, or the host's.
std::string node_name(const config::Snapshot& snapshot);

}  // namespace fopd::daemon

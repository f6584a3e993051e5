#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/current.h"
#include "config/schema.h"
#include "core/events.h"
#include "daemon/settings.h"
#include "lrs/settings.h"

namespace fopd::daemon {

// The configuration of one node over its life: what was loaded, what is in force, what differs from
// the file. Belongs to the control thread.
class Configuration {
public:
    // Loads the newest state of the source: a file, or a text in the simulated world.
    using Load = std::function<std::expected<config::SnapshotPtr, config::Problems>()>;

    // `file` is what status and log call the source.
    static std::expected<std::unique_ptr<Configuration>, config::Problems> open(std::string file,
                                                                                Load load);

    const config::SnapshotPtr& current() const { return current_.snapshot(); }
    const std::string& file() const { return file_; }
    std::string hash() const { return config::hash(*current_.snapshot()); }

    struct Reloaded {
        std::vector<std::string> changed;  // In force now.
        std::vector<std::string>
            needs_restart;  // Still waiting, from this reload or an earlier one.
        std::string hash;
    };
    struct Refused {
        bool busy = false;  // Not now; nothing is wrong with the file.
        std::vector<std::string> problems;
    };
    // Loads again and puts into force what can change at run time, all at once. A bad source
    // changes nothing. What was set by hand until the next reload is over.
    // `check` says what else is wrong with the new one.
    using Check = std::function<std::vector<std::string>(const config::Snapshot& next)>;
    std::expected<Reloaded, Refused> reload(const Check& check);
    // What the source says now. Changes nothing.
    std::expected<config::SnapshotPtr, Refused> read() const;

    // The log level in force, and one set by hand until the next reload.
    core::Level log_level() const;
    void set_log_level(core::Level level) { log_level_by_hand_ = level; }

    // Puts other settings of the request scheduler into force, until the next reload or restart.
    // Requires: they would be read from the file. Which keys have changed.
    std::vector<std::string> set_lrs(lrs::LrsSettings settings);
    // The keys of the request scheduler whose value in force is not that of the file.
    std::vector<std::string> differing_lrs_keys() const;
    // The file with what is in force of the request scheduler, or why it cannot be had.
    struct Draft {
        std::string before;  // The text of the file.
        std::string after;
    };
    std::expected<Draft, std::string> draft_lrs() const;
    // Somebody has put the draft into the place of the file. False: the file says something else.
    bool note_lrs_saved();

    // Keys whose value in force was set by hand.
    std::vector<std::string> differing_keys() const;
    const std::vector<std::string>& keys_waiting_for_restart() const { return waiting_; }

private:
    Configuration(std::string file, Load load, config::SnapshotPtr first)
        : file_(std::move(file)),
          load_(std::move(load)),
          lrs_in_file_(first->get<lrs::LrsSettings>()),
          current_(std::move(first)) {}

    const std::string file_;
    const Load load_;
    lrs::LrsSettings lrs_in_file_;  // When it was last read.
    config::Current current_;
    std::vector<std::string> waiting_;
    std::optional<core::Level> log_level_by_hand_;
};

// The node's name: as configured, or the host's.
std::string node_name(const config::Snapshot& snapshot);

}  // namespace fopd::daemon

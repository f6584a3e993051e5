#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/address.h"
#include "config/schema.h"
#include "core/events.h"
#include "core/time.h"
#include "daemon/log_format.h"

namespace fopd::daemon {

// The daemon's own sections of the configuration; their keys, rules and help are in settings.cc.

struct NodeSettings {
    std::string name;  // Empty: the host's name.
    std::string data_dir = "/var/lib/fopd";
    Duration drain_timeout = 30s;
};

struct LocalitySettings {
    std::optional<std::uint32_t> cores;  // Unset: half of the cores the process may use.
    std::uint64_t buffers_bytes = 64ULL << 20;
    std::uint32_t receive_buffers = 1024;
    Duration spin{50us};
    bool sqpoll = false;
};

struct AuthSettings {
    enum class Mode : std::uint8_t { kRequired, kNone };
    Mode mode = Mode::kRequired;
    std::optional<std::string> principals{};
    std::vector<std::string> peer_keys{};  // Files; the current key's file first.
    std::optional<std::string> issuer_public{};
};

struct AdminSettings {
    std::string socket = "/run/fopd/admin.sock";
    std::optional<config::Address> metrics = config::Address{.host = "127.0.0.1", .port = 9420};
};

struct LogSettings {
    core::Level level = core::Level::kInfo;
    Duration slow_fop = 500ms;
    std::optional<LogFormat> format{};   // Unset: kJournald if stderr is the journal.
    std::optional<std::string> audit{};  // A file; unset: the audit trail is part of the log.
    bool audit_changes = false;
};

// All sections: the daemon's own, and those of the folders it uses.
config::Schema make_schema();

}  // namespace fopd::daemon

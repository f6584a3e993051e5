#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/events.h"
#include "core/time.h"

namespace fopd::daemon {

enum class LogFormat : std::uint8_t {
    kText,      // 2026-11-21T08:22:34.123456Z info fopd.daemon.ready key=value …
    kJson,      // {"time":"2026-…Z","level":"info","event":"fopd.daemon.ready","key":"value",…}
    kJournald,  // The journal's own fields.
};

// "trace", "debug", "info", "warn", "error": the words of the log and of its configuration.
std::string_view level_name(core::Level level);
std::optional<core::Level> level_named(std::string_view name);

// One event, borrowed for the call.
struct LogEvent {
    core::Level level;
    WallTime time;
    std::string_view name;  // Without the "fopd." in front.
    std::span<const core::Field> fields;
};

// One line with its newline. Values with blanks, quotes or anything append_printable() escapes
// stand in double quotes; a line never holds a second newline or a terminal's control characters.
std::string format_text(const LogEvent& event);

// One JSON object and a newline, valid whatever the fields hold: bytes that are no UTF-8 become
// U+FFFD, numbers that JSON does not know (nan, inf) null. A field named like one of the object's
// own keys (time, level, event) gets a "_" at its end.
std::string format_json(const LogEvent& event);

// The journal entry: MESSAGE (event and fields as in the text, without time and level), PRIORITY,
// SYSLOG_IDENTIFIER=fopd, FOPD_EVENT, and FOPD_<KEY> for each field, packed into one string.
std::string format_journal(const LogEvent& event);
// Takes the next "NAME=value" off a packed entry. Requires: `packed` is not empty and is what
// format_journal() made, or the rest of it.
std::string_view next_journal_field(std::string_view& packed);

}  // namespace fopd::daemon

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
    std::string_view name;  // Without the prefix "fopd.".
    std::span<const core::Field> fields;
};

// One line with its newline. Values with blanks, quotes or characters that append_printable()
// escapes are put in double quotes; the line never contains another newline or a terminal's control
// characters.
std::string format_text(const LogEvent& event);

// One JSON object and a newline, always valid: invalid UTF-8 becomes U+FFFD, and numbers JSON
// cannot represent (nan, inf) become null. A field named like one of the object's own keys (time,
// level, event) gets a "_" appended.
std::string format_json(const LogEvent& event);

// The journal entry: MESSAGE (event and fields as in the text, without time and level), PRIORITY,
// SYSLOG_IDENTIFIER=fopd, FOPD_EVENT, and FOPD_<KEY> for each field, packed into one string.
std::string format_journal(const LogEvent& event);
// Removes and returns the next "NAME=value" of a packed entry. REQUIRES: `packed` is the non-empty
// rest of a result of format_journal().
std::string_view next_journal_field(std::string_view& packed);

}  // namespace fopd::daemon

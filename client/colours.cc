// SPDX-License-Identifier: BSD-2-Clause
#include "client/colours.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "client/table.h"

namespace fopd::client {

namespace {

// Standard output and standard error are one for the program, and so is this.
struct Coloured {
    bool out = false;
    bool err = false;
};
Coloured& coloured() {
    static Coloured all;
    return all;
}

std::string_view variable(const char* name) {
    const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    return text == nullptr ? std::string_view() : text;
}

struct StateTint {
    std::string_view state;
    Tint tint;
};
// Other states have no colour: they are as they should be.
constexpr std::array kStates{
    StateTint{"ok", Tint::kGood},          StateTint{"critical", Tint::kBad},
    StateTint{"stuck", Tint::kBad},        StateTint{"given-up", Tint::kBad},
    StateTint{"missing", Tint::kBad},      StateTint{"read-only", Tint::kBad},
    StateTint{"warning", Tint::kWarning},  StateTint{"unknown", Tint::kWarning},
    StateTint{"suspect", Tint::kWarning},  StateTint{"opening", Tint::kWarning},
    StateTint{"starting", Tint::kWarning}, StateTint{"draining", Tint::kWarning},
    StateTint{"drained", Tint::kWarning},  StateTint{"stopping", Tint::kWarning},
};

}  // namespace

void choose_colours(std::string_view wish) {
    const std::string_view terminal = variable("TERM");
    const bool may_be = variable("NO_COLOR").empty() && !terminal.empty() && terminal != "dumb";
    const auto is_chosen = [&](int fd) {
        return wish == "always" || (wish == "auto" && may_be && isatty(fd) == 1);
    };
    coloured() = {.out = is_chosen(STDOUT_FILENO), .err = is_chosen(STDERR_FILENO)};
}

std::string tinted(std::string_view text, Tint tint, int fd) {
    const bool is_chosen = fd == STDERR_FILENO ? coloured().err : coloured().out;
    std::string plain(text);
    if (!is_chosen || tint == Tint::kNone) return plain;
    const char* const colour = tint == Tint::kGood      ? "\x1b[32m"
                               : tint == Tint::kWarning ? "\x1b[33m"
                                                        : "\x1b[31m";
    return colour + plain + "\x1b[0m";
}

Tint tint_of_state(std::string_view state) {
    const auto* const row = std::ranges::find(kStates, state, &StateTint::state);
    return row == kStates.end() ? Tint::kNone : row->tint;
}

std::string state_shown(const nlohmann::json& state) {
    const std::string text = shown(state);
    return tinted(text, tint_of_state(text));
}

}  // namespace fopd::client

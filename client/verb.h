// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "client/admin_client.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's.
class App;
}

namespace fopd::client {

// What verbs take besides the global options; each declares what it uses.
struct VerbArguments {
    std::string level;
    double interval_s = 1;
    std::uint64_t count = 0;  // 0: until interrupted.
};

enum class Output : std::uint8_t { kPage, kJson, kQuiet };

// One run of a verb.
struct Call {
    std::string_view verb;
    const AdminClient& client;
    Output output;
    VerbArguments arguments;
};

// A verb of fopctl.
struct Verb {
    std::string_view name;
    std::string_view summary;
    // How long it waits for the server without --timeout; 0: as long as it takes.
    Duration timeout;
    // Adds its own options, or null.
    void (*declare)(CLI::App& app, VerbArguments& arguments);
    // The exit code. Throws nlohmann's exceptions when the answer has not the form it should.
    int (*run)(const Call& call);
};

// The JSON object of a 200 answer. Otherwise says on standard error why there is none, and gives
// the exit code.
std::expected<nlohmann::json, int> checked(const Call& call,
                                           const std::expected<AdminAnswer, AdminProblem>& answer);

// "fopctl: …" and a newline on standard error. `text` is safe for a terminal already.
void complain(std::string_view text);

// Writes to standard output at once. False, after a complaint, when that fails.
bool print(std::string_view text);

}  // namespace fopd::client

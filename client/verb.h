// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "client/admin_client.h"
#include "client/complaints.h"
#include "client/replaced_file.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's.
class App;
class Option;
}  // namespace CLI

namespace fopd::client {

// The time limit for one fop, one window of a transfer, or one request to a daemon.
inline constexpr Duration kTimeoutDefault = 30s;

// The arguments of all verbs, besides the global options. Each verb declares those that it uses.
struct VerbArguments {
    std::string level;
    std::string state;  // The state of the node to wait for.
    double interval_s = 1;
    std::uint64_t count = 0;  // 0: until interrupted.

    std::string op = "echo";
    std::uint64_t size_bytes = 4096;
    std::uint32_t depth = 1;
    std::uint32_t jobs = 1;
    double seconds = 10;
    bool durable = false;
    std::string object;  // Empty: bench makes its own.
    std::uint64_t object_bytes = 64U << 20;

    std::string device;
    bool end = false;
    bool show = false;
    std::optional<std::uint16_t> slot;
    bool is_sure = false;
    bool unload = false;

    std::vector<std::string> names;  // Names of objects.
    std::string new_name;
    std::string prefix;
    std::string group;
    std::string collection;
    std::string owner;  // OWNER, OWNER:GROUP or :GROUP.
    std::uint16_t mode = 0;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;
    bool no_replace = false;
    bool recursive = false;
    bool dry_run = false;
    bool size_only = false;
    bool no_skip = false;
    bool remove_others = false;
    std::optional<std::uint64_t> remove_max;
    bool all = false;
    bool is_long = false;
    bool missing = false;
    bool buffered = false;
    bool explain = false;

    std::vector<std::string> words;  // A rule, a request, or a policy and KEY=VALUE.
    std::optional<std::uint64_t> if_version;

    std::string id;  // The id of a fop or a token.
    bool slow = false;
    std::string file;
    bool keep_going = false;
    std::string public_file;
    std::string name;
    std::string rights;
    std::string groups;
    bool delegate = false;
    std::vector<std::string> quotas;
    std::string principals_file;  // Empty: the daemon's.
    std::string config_file;      // Of a daemon that does not run. Empty: the default one.
    std::string issuer_file;
    std::string principal;
    std::string pool;
    std::string fid;
    std::string expires = "1d";
    std::uint64_t generation = 0;

    std::string pin;  // A span, such as 3d; empty: no pin.
    std::uint8_t priority = 128;
    std::string medium;
    std::string drive;
    bool force = false;
};

// The server of the fops, and the identity of the client.
struct Remote {
    std::string server = "tcp://127.0.0.1:31470";
    std::string key_file;
    std::string token;  // The token, or the file that holds it.
    std::string job;
    std::string protect = "seal";
};

enum class Output : std::uint8_t { kPage, kJson, kQuiet };

class SharedSession;

// Runs command lines, which have the options of all verbs that this one has, if they give no
// others.
class CommandLines {
public:
    virtual ~CommandLines() = default;
    // Returns the exit code. All complaints have been printed when it returns.
    virtual int run(std::vector<std::string> words) = 0;
};
// Where command lines come from.
struct LineSource {
    SharedSession* shared = nullptr;  // The session of all of them; null: each verb has its own.
    bool is_typed = false;  // At a terminal: an interrupt ends a verb, but not the program.
};

// One run of a verb.
struct Call {
    std::string_view verb;
    const AdminClient& client;
    const Remote& remote;
    Duration timeout;
    Output output;
    VerbArguments arguments;
    // Lets a verb run other verbs, one for each line. Empty: this verb is itself run by another.
    std::function<std::unique_ptr<CommandLines>(const LineSource& source)> open_lines{};
    LineSource source{};

    // The separator between the elements of a long list in JSON. In a batch each result is one
    // line, so there it has no newline.
    std::string_view list_separator() const { return source.shared == nullptr ? ",\n" : ","; }
};

// A verb of fopctl.
struct Verb {
    std::string_view name;  // Words: the groups, and last the verb.
    std::string_view summary;
    std::string_view example;  // Without the name of the program; several are in lines.
    // The time limit without --timeout; 0: none.
    Duration timeout;
    // Adds the options of the verb; null: it has none.
    void (*declare)(CLI::App& app, VerbArguments& arguments);
    // Returns the exit code. Throws exceptions of nlohmann-json if an answer has another form.
    int (*run)(const Call& call);
};

// All verbs, in the order of --help. The table of x_verbs() is in verbs_x.cc.
std::span<const Verb> disk_verbs();
std::span<const Verb> fabric_verbs();
std::span<const Verb> io_sched_verbs();
std::span<const Verb> epoch_verbs();
std::span<const Verb> key_verbs();
std::span<const Verb> lrs_verbs();
std::span<const Verb> mirror_verbs();
std::span<const Verb> node_verbs();
std::span<const Verb> object_verbs();
std::span<const Verb> session_verbs();
std::span<const Verb> tape_verbs();

// Adds --interval and --count, for verbs that repeat.
void declare_repetition(CLI::App& app, VerbArguments& arguments, const char* interval_summary,
                        double interval_min_s);

// Adds --pool, for objects.
CLI::Option* declare_pool(CLI::App& app, VerbArguments& arguments);
// Adds --collection, for new objects.
void declare_collection(CLI::App& app, VerbArguments& arguments);
// Adds --explain.
void declare_explain(CLI::App& app, VerbArguments& arguments);

// The exit code of `health` when the health is not known, such as after a wrong option.
inline constexpr int kExitHealthUnknown = 3;
// Prints what `health` says on standard output in that case. Returns kExitHealthUnknown.
int print_unknown_health(Output output, const std::string& why);

// The JSON object, or list, of an answer with status 200. Otherwise prints the reason on standard
// error, and returns the exit code.
std::expected<nlohmann::json, int> checked(const Call& call,
                                           const std::expected<HttpAnswer, AdminProblem>& answer);

// Complains, with the name of the verb. Returns the exit code.
int complain_about(const Call& call, std::string_view words, int exit_code);
int complain_about(const Call& call, const ReplacedFile::Problem& problem);

// The results of verbs, for people and for --json; with --quiet nothing is printed. They return the
// exit code.
//
// `json` as it is, or what `page` returns.
int show(const Call& call, const std::string& json, const std::function<std::string()>& page);
// The answer of the daemon, checked: as it came, or as the page made from it.
int show_answer(const Call& call, const std::expected<HttpAnswer, AdminProblem>& answer,
                const std::function<std::string(const nlohmann::json& body)>& page);
// Prints the object as JSON, for verbs that have no output for people.
int show_json(const Call& call, const nlohmann::ordered_json& object);

// Writes to standard output at once. If that fails, complains and returns false.
bool print(std::string_view text);

}  // namespace fopd::client

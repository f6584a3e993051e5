// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "client/command_line.h"
#include "client/complaints.h"
#include "client/exit_code.h"
#include "client/keys_target.h"
#include "client/object_run.h"
#include "client/principals_file.h"
#include "client/replaced_file.h"
#include "client/secret_file.h"
#include "client/table.h"
#include "client/verb.h"
#include "config/units.h"
#include "core/clock.h"
#include "core/entropy.h"
#include "core/printable.h"
#include "fop/hex.h"
#include "fop/name.h"
#include "fop/principal.h"
#include "fop/range.h"
#include "fop/reserved_names.h"
#include "fop/rights.h"
#include "fop/token.h"

namespace fopd::client {

namespace {

void remark(const Call& call, std::string_view words) {
    if (call.output != Output::kQuiet) complain(words);
}

fop::Key new_key() {
    core::SystemEntropy entropy;
    fop::Key key;
    entropy.fill(key.writable());
    return key;
}

// Reads different names with commas between them. None: the text has another form.
std::optional<std::vector<std::string>> names_in(std::string_view text) {
    std::vector<std::string> names;
    if (text.empty()) return names;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t comma = std::min(text.find(',', at), text.size());
        std::string name(text.substr(at, comma - at));
        at = comma + 1;
        const bool is_there = std::ranges::find(names, name) != names.end();
        if (name.empty() || !fop::is_name(name) || is_there) return std::nullopt;
        names.push_back(std::move(name));
    }
    return names;
}

std::string date_of(std::int64_t unix_seconds) {
    const auto time = static_cast<time_t>(unix_seconds);
    std::tm parts{};
    std::array<char, 32> text{};
    if (gmtime_r(&time, &parts) == nullptr) return std::to_string(unix_seconds);
    const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text.data(), size};
}

// -- the file of principals --

// The file and its parsed text, or the exit code after a complaint.
struct Opened {
    ReplacedFile file;
    PrincipalsFile principals;
    KeysTarget target;
};
std::expected<Opened, int> open_principals(const Call& call, ReplacedFile::Missing missing) {
    auto target = find_keys_target(call);
    if (!target) return std::unexpected(target.error());
    const std::string& path = target->path;
    auto file = ReplacedFile::open(path, missing);
    if (!file) return std::unexpected(complain_about(call, file.error()));
    // If no daemon uses the file, the user that will read it is a guess.
    const bool is_known = target->reader && (target->is_in_use || !file->existed());
    if (is_known) file->let_read(*target->reader);
    if (!target->reader && !file->existed() && ::geteuid() == 0) {
        remark(call, "only root and the group of its directory can read " + core::printable(path) +
                         ": there is no user " + kDaemonUser +
                         ", and no data directory whose owner is taken instead; make the data "
                         "directory first, or name fopd's configuration with --config");
    }
    auto principals = PrincipalsFile::parse(file->text());
    if (!principals) {
        return std::unexpected(complain_about(
            call,
            core::printable(path) + ": " + principals.error() +
                "; fopctl changes files of the form it writes, edit this one by hand and run "
                "fopctl reload",
            kExitRefused));
    }
    return Opened{.file = std::move(*file),
                  .principals = std::move(*principals),
                  .target = std::move(*target)};
}

// Replaces the file and has the daemon read it, and nothing else. If the daemon refuses it,
// restores the file. Returns the exit code. `revoked` is the number of the token that was revoked,
// for the daemon's audit trail.
int take_effect(const Call& call, const Opened& opened, const std::string& revoked = {}) {
    if (const auto done = opened.file.replace(opened.principals.text()); !done) {
        return complain_about(call, done.error());
    }
    const auto answer =
        call.client.post("/v1/keys/reload" + (revoked.empty() ? "" : "?token=" + revoked));
    if (!answer && answer.error().kind == AdminFailure::kNoServer) {
        std::string words = "no fopd is running here; the change takes effect when fopd starts";
        if (!opened.target.is_configured) {
            words += ", if auth.principals in its configuration names " +
                     core::printable(opened.file.path());
        }
        remark(call, words);
        return kExitDone;
    }
    if (!answer) {
        remark(call, "the file is changed, but it is unknown whether fopd has read it");
        return checked(call, answer).error();
    }
    if (answer->status == 200) {
        if (opened.target.open_to_all) {
            remark(call,
                   "fopd admits every client, with or without a key, as long as auth.mode is none");
        }
        return kExitDone;
    }
    const int exit_code = checked(call, answer).error();
    if (const auto back = opened.file.put_back(); !back) return complain_about(call, back.error());
    return complain_about(call, "fopd refused the change; the file is as it was", exit_code);
}

void declare_file(CLI::App& app, VerbArguments& arguments) {
    app.add_option("--principals", arguments.principals_file,
                   "The file of principals; by default the one that the daemon uses, or, if no "
                   "daemon runs, auth.principals of --config (or FOPD_PRINCIPALS)");
    app.add_option("--config", arguments.config_file,
                   "The configuration that names the file of principals if no daemon runs; by "
                   "default /etc/fopd/fopd.yaml, if it exists");
}

// -- keygen --

void declare_keygen(CLI::App& app, VerbArguments& arguments) {
    app.add_option("file", arguments.file, "The new file for the key")->required();
    app.add_option("--public", arguments.public_file,
                   "A second new file, for the public half, which auth.issuer_public names");
}

int run_keygen(const Call& call) {
    const fop::Key key = new_key();
    std::string text = fop::to_text(key) + "\n";
    const auto written = write_new_secret(call.arguments.file, text);
    fop::wipe(std::as_writable_bytes(std::span(text)));
    if (!written) return complain_about(call, written.error());
    if (call.arguments.public_file.empty()) return kExitDone;
    const auto public_half = fop::to_text(fop::Issuer(key).public_half()) + "\n";
    if (const auto done = write_new_secret(call.arguments.public_file, public_half); !done) {
        ::unlink(call.arguments.file.c_str());
        return complain_about(call, done.error());
    }
    return kExitDone;
}

// -- key --

void declare_key_name(CLI::App& app, VerbArguments& arguments) {
    app.add_option("name", arguments.name, "The principal")->required();
}

void declare_key_create(CLI::App& app, VerbArguments& arguments) {
    declare_key_name(app, arguments);
    declare_file(app, arguments);
    arguments.rights = "read,write,create,delete";
    app.add_option("--rights", arguments.rights,
                   "Rights: read, write, create, delete, admin, with commas between")
        ->capture_default_str();
    app.add_option("--groups", arguments.groups,
                   "The groups of the principal, with commas between");
    app.add_flag("--delegate", arguments.delegate, "Let the principal act for other users");
    app.add_option("--quota", arguments.quotas,
                   "The most that it may own in a pool: POOL=BYTES, POOL=BYTES,OBJECTS or "
                   "POOL=,OBJECTS; once for each pool");
    app.add_option("--out", arguments.file,
                   "Write the key to this new file instead of printing it");
}

// The mistake of --rights in words.
std::string fault_of_rights(const std::string& text, const Error& error) {
    return "--rights: \"" + core::printable(text) + "\": " + error.context;
}

// Reads one quota for each pool. An error is the mistake in words.
std::expected<std::vector<PrincipalsFile::Quota>, std::string> quotas_in(
    const std::vector<std::string>& texts) {
    std::vector<PrincipalsFile::Quota> quotas;
    for (const std::string& text : texts) {
        auto quota = PrincipalsFile::parse_quota(text);
        if (!quota) return std::unexpected(std::move(quota.error()));
        const bool is_there =
            std::ranges::find(quotas, quota->pool, &PrincipalsFile::Quota::pool) != quotas.end();
        if (is_there) {
            return std::unexpected("there is more than one quota for pool " +
                                   core::printable(quota->pool));
        }
        quotas.push_back(std::move(*quota));
    }
    return quotas;
}

std::string key_id_of(const PrincipalsFile::Principal& principal) {
    const auto key = fop::parse_key(principal.key);
    return key ? fop::to_text(fop::key_id(*key)) : "-";
}

// The daemon counts whole blocks, so a quota that ends within one is less than was asked for.
void tell_rounded(const Call& call, const std::vector<PrincipalsFile::Quota>& quotas) {
    if (call.output == Output::kQuiet) return;
    for (const auto& each : quotas) {
        const auto bytes = config::parse_size(each.bytes);
        if (!bytes || *bytes % fop::kBlockBytes == 0) continue;
        const std::uint64_t whole = *bytes - *bytes % fop::kBlockBytes;
        client::remark(std::string(call.verb) +
                       ": space is counted in blocks of 4096 bytes: the quota in pool " +
                       core::printable(each.pool) + " is " + std::to_string(whole) +
                       " bytes, not " + std::to_string(*bytes));
    }
}

int run_key_create(const Call& call) {
    const VerbArguments& asked = call.arguments;
    const auto rights = fop::parse_rights(asked.rights);
    const auto groups = names_in(asked.groups);
    const auto quotas = quotas_in(asked.quotas);
    const bool is_name = !asked.name.empty() && fop::is_name(asked.name);
    if (!is_name || !rights || !groups || !quotas) {
        return complain_about(call,
                              !is_name  ? "a name is 1 to 64 bytes of UTF-8 without control "
                                          "characters"
                              : !rights ? fault_of_rights(asked.rights, rights.error())
                              : !groups ? "groups are names with commas between, each once"
                                        : quotas.error(),
                              kExitUsage);
    }
    if (fop::is_reserved_name(asked.name)) {
        return complain_about(call,
                              "no principal may be called " + asked.name +
                                  ": reports use this name for other clients",
                              kExitUsage);
    }
    auto opened = open_principals(call, ReplacedFile::Missing::kEmpty);
    if (!opened) return opened.error();
    if (opened->principals.find(asked.name) != nullptr) {
        return complain_about(
            call,
            core::printable(asked.name) + " exists already; man fopctl says how to change a key",
            kExitRefused);
    }
    const fop::Key key = new_key();
    PrincipalsFile::Principal principal{.name = asked.name,
                                        .key = fop::to_text(key),
                                        .rights = {},
                                        .groups = *groups,
                                        .delegate = asked.delegate,
                                        .quotas = *quotas,
                                        .previous_key_count = 0};
    if (!rights->none()) principal.rights = *names_in(fop::to_text(*rights));
    if (!asked.file.empty()) {
        if (const auto kept = write_new_secret(asked.file, principal.key + "\n"); !kept) {
            return complain_about(call, kept.error());
        }
    }
    opened->principals.add(principal);
    const int exit_code = take_effect(call, *opened);
    if (exit_code != kExitDone && !asked.file.empty()) ::unlink(asked.file.c_str());
    if (exit_code != kExitDone) return exit_code;
    tell_rounded(call, *quotas);
    nlohmann::ordered_json object{{"name", asked.name}, {"key_id", key_id_of(principal)}};
    if (asked.file.empty()) {
        object["key"] = principal.key;
    } else {
        object["file"] = asked.file;
    }
    // A key that is in no file is printed even with --quiet.
    if (call.output != Output::kJson && asked.file.empty()) {
        return print(principal.key + "\n") ? kExitDone : kExitRefused;
    }
    return show_json(call, object);
}

nlohmann::ordered_json quotas_json(const std::vector<PrincipalsFile::Quota>& quotas) {
    // Objects are counted without a unit, which is a size, too. Null: no limit.
    const auto or_null = [](const std::string& text) {
        const auto number = config::parse_size(text);
        return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
    };
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& each : quotas) {
        list.push_back({{"pool", each.pool},
                        {"bytes", or_null(each.bytes)},
                        {"objects", or_null(each.objects)}});
    }
    return list;
}

int run_key_list(const Call& call) {
    const auto opened = open_principals(call, ReplacedFile::Missing::kProblem);
    if (!opened) return opened.error();
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& each : opened->principals.principals()) {
        list.push_back({{"name", each.name},
                        {"key_id", key_id_of(each)},
                        {"previous_keys", each.previous_key_count},
                        {"rights", each.rights},
                        {"groups", each.groups},
                        {"delegate", each.delegate},
                        {"quotas", quotas_json(each.quotas)}});
    }
    const nlohmann::ordered_json object{{"principals", list}};
    return show(call, dumped(object), [&] {
        return table(list, {{"NAME", "name"},
                            {"KEY ID", "key_id", shown, Column::Kind::kWhole},
                            {"PREVIOUS", "previous_keys", shown, Column::Kind::kWide},
                            {"RIGHTS", "rights"},
                            {"GROUPS", "groups"},
                            {"DELEGATE", "delegate", [](const nlohmann::json& delegate) {
                                 return std::string(delegate.get<bool>() ? "yes" : "no");
                             }}});
    });
}

void declare_key_revoke(CLI::App& app, VerbArguments& arguments) {
    declare_key_name(app, arguments);
    declare_file(app, arguments);
}

int run_key_revoke(const Call& call) {
    auto opened = open_principals(call, ReplacedFile::Missing::kProblem);
    if (!opened) return opened.error();
    if (opened->principals.find(call.arguments.name) == nullptr) {
        return complain_about(call, core::printable(call.arguments.name) + " is not a principal",
                              kExitNotFound);
    }
    opened->principals.remove(call.arguments.name);
    return take_effect(call, *opened);
}

// -- token --

void declare_token_create(CLI::App& app, VerbArguments& arguments) {
    app.add_option("--issuer", arguments.issuer_file,
                   "The file with the issuer's key, which fopctl keygen makes")
        ->required();
    app.add_option("--rights", arguments.rights,
                   "Rights: read, write, create, delete, admin, with commas between")
        ->required();
    app.add_option(
        "--principal", arguments.principal,
        "Only this principal may use the token; by default every client that has it may");
    app.add_option("--pool", arguments.pool, "The token is only for objects in this pool");
    auto* const by_name =
        app.add_option("--object", arguments.object,
                       "The token is only for this object, whose fid fopctl asks the server for");
    app.add_option("--fid", arguments.fid,
                   "The token is only for the object with this fid, which stat shows")
        ->excludes(by_name);
    app.add_option("--out", arguments.file,
                   "Write the token to this new file instead of printing it");
    app.add_option("--expires", arguments.expires,
                   "How long the token is valid, such as 15min, 12h or 7d")
        ->capture_default_str();
    app.add_option("--generation", arguments.generation,
                   "The generation of the token; older generations can be revoked together")
        ->check(whole_between(0, INT64_MAX))
        ->capture_default_str();
}

std::expected<fop::Fid, int> look_up(const Call& call, const std::string& name) {
    const auto session = ObjectSession::open(session_options(call));
    if (!session) return std::unexpected(client::complain_about(call, session.error()));
    ObjectSession& opened = **session;
    const Instant deadline = after(opened.reactor().now(), call.timeout);
    const auto found =
        opened.run(opened.objects().lookup(call.arguments.pool, name, {.deadline = deadline}));
    if (found) return found->fid;
    return std::unexpected(complain_about(call, core::printable(name) + ": " + found.error().words,
                                          exit_code_of(found.error().status)));
}

// The reason why the arguments cannot name an object; empty if they can, or name none.
std::string fault_of_object(const VerbArguments& asked) {
    if (!asked.fid.empty() && !parse_fid(asked.fid)) {
        return "--fid is 32 hexadecimal digits, as stat shows them";
    }
    if (asked.object.empty()) return {};
    const auto good = fop::check_object_name(asked.object);
    return good ? std::string() : "--object: " + std::string(good.error().context);
}

// The object for which the token is asked, or the exit code after a complaint.
std::expected<fop::TokenObject, int> object_asked(const Call& call) {
    const VerbArguments& asked = call.arguments;
    if (const auto fid = parse_fid(asked.fid)) return fop::token_object(*fid);
    if (asked.object.empty()) return fop::TokenObject{};
    const auto found = look_up(call, asked.object);
    if (!found) return std::unexpected(found.error());
    return fop::token_object(*found);
}

int run_token_create(const Call& call) {
    const VerbArguments& asked = call.arguments;
    const auto rights = fop::parse_rights(asked.rights);
    const auto span = seconds_in(asked.expires);
    const std::string rights_fault =
        rights ? std::string() : fault_of_rights(asked.rights, rights.error());
    const std::string object_fault = fault_of_object(asked);
    const char* const fault = !rights          ? rights_fault.c_str()
                              : rights->none() ? "a token needs at least one right"
                              : !span          ? "--expires is a number with s, min, h or d"
                              : !fop::is_name(asked.principal) ? "the principal is not a valid name"
                              : !fop::is_name(asked.pool)      ? "the pool is not a valid name"
                              : !object_fault.empty()          ? object_fault.c_str()
                                                               : nullptr;
    if (fault != nullptr) return complain_about(call, fault, kExitUsage);
    const auto seed = read_key_file(asked.issuer_file);
    if (!seed) return complain_about(call, core::printable(seed.error()), kExitConfig);
    const auto for_object = object_asked(call);
    if (!for_object) return for_object.error();
    fop::Token token{.principal = asked.principal,
                     .rights = *rights,
                     .pool = asked.pool,
                     .object = *for_object,
                     .not_after = core::PosixClock().wall().unix_ns / 1'000'000'000 + *span,
                     .generation = asked.generation};
    core::SystemEntropy entropy;
    entropy.fill(token.id);
    const std::string text = fop::token_to_text(fop::Issuer(*seed).sign(token));
    const std::string id = fop::to_hex(token.id);
    const bool has_file = !asked.file.empty();
    if (has_file) {
        if (const auto kept = write_new_secret(asked.file, text + "\n"); !kept) {
            return complain_about(call, kept.error());
        }
    }
    if (call.output != Output::kJson) {
        if (!has_file && !print(text + "\n")) return kExitRefused;
        remark(call, "token " + id + ", good until " + date_of(token.not_after));
        return kExitDone;
    }
    nlohmann::ordered_json object{{has_file ? "file" : "token", has_file ? asked.file : text},
                                  {"id", id},
                                  {"not_after", token.not_after},
                                  {"generation", token.generation}};
    return show_json(call, object);
}

void declare_token_revoke(CLI::App& app, VerbArguments& arguments) {
    app.add_option("token", arguments.id,
                   "The number of the token (32 hexadecimal digits), its file, or the token itself")
        ->required();
    declare_file(app, arguments);
}

std::optional<std::string> token_id_in(const std::string& text) {
    std::string id = text;
    std::ranges::transform(id, id.begin(),
                           [](char c) { return c >= 'A' && c <= 'F' ? c + 32 : c; });
    if (id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos) return id;
    const auto bytes = read_token(text);
    if (!bytes) return std::nullopt;
    const auto token = fop::read_unverified(*bytes);
    if (!token) return std::nullopt;
    return fop::to_hex(token->id);
}

int run_token_revoke(const Call& call) {
    const auto id = token_id_in(call.arguments.id);
    if (!id) {
        return complain_about(
            call, "the argument is not a token, its number or a file that has one", kExitUsage);
    }
    auto opened = open_principals(call, ReplacedFile::Missing::kEmpty);
    if (!opened) return opened.error();
    if (opened->principals.is_revoked(*id)) return kExitDone;
    opened->principals.revoke_token(*id);
    return take_effect(call, *opened, *id);
}

constexpr std::array kKeyVerbs{
    Verb{"keygen", "Make a key for signing tokens", "keygen issuer.key --public issuer.pub",
         kTimeoutDefault, declare_keygen, run_keygen},
    Verb{"key create", "Add a principal and make its key",
         "key create ann --groups staff --out ann.key", kTimeoutDefault, declare_key_create,
         run_key_create},
    Verb{"key list", "List the principals", "key list", kTimeoutDefault, declare_file,
         run_key_list},
    Verb{"key revoke", "Remove a principal and its key", "key revoke ann", kTimeoutDefault,
         declare_key_revoke, run_key_revoke},
    Verb{"token create", "Sign a token that lends rights to its holder",
         "token create --issuer issuer.key --rights read --object log", kTimeoutDefault,
         declare_token_create, run_token_create},
    Verb{"token revoke", "Make a token invalid", "token revoke 00112233445566778899aabbccddeeff",
         kTimeoutDefault, declare_token_revoke, run_token_revoke},
};

}  // namespace

std::span<const Verb> key_verbs() {
    return kKeyVerbs;
}

}  // namespace fopd::client

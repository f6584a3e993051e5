// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "client/command_line.h"
#include "client/complaints.h"
#include "client/exit_code.h"
#include "client/replaced_file.h"
#include "client/table.h"
#include "client/verb.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

using nlohmann::json;

// -- show --

// The shares of a class: "500/s x4 limit 2000/s".
std::string granted(const json& shares) {
    std::string text;
    if (shares.contains("reservation")) text += shown(shares.at("reservation")) + "/s ";
    text += "x" + shown(shares.at("weight"));
    if (shares.contains("limit")) text += " limit " + shown(shares.at("limit")) + "/s";
    if (shares.contains("soft_limit")) text += " soft " + shown(shares.at("soft_limit")) + "/s";
    return text;
}

std::string throttled_shown(const json& at) {
    const std::string text = span_of(at.at("throttled_s").get<double>());
    return at.at("throttled").get<bool>() ? text + " now" : text;
}

// Empty for a class without shares.
std::string share_shown(const json& at, const char* key) {
    return at.contains("shares") ? shown(at.at("shares").at(key)) : "";
}

// Empty for a class without turns, or that is not among those whose turns are next.
std::string turns_shown(const json& at, const char* key) {
    const auto turns = at.find("turns");
    return turns != at.end() && turns->contains(key) ? shown(turns->at(key)) : "";
}

// The node's share of the limits of a cluster: "25%", "50% cut off", "33% rules differ".
std::string cluster_shown(const json& at) {
    if (!at.contains("cluster")) return {};
    const json& cluster = at.at("cluster");
    std::string text = fixed(100 * cluster.at("share").get<double>(), 1) + "%";
    if (cluster.at("cut_off").get<bool>()) text += " cut off";
    if (cluster.at("differs").get<bool>()) text += " rules differ";
    return text;
}

struct ClassColumn {
    const char* title;
    std::string (*text)(const json& at);
    bool is_wide = false;         // Only in wide tables.
    const char* needs = nullptr;  // Only if a class has this object.
    // Hidden if the classes have shares of a cluster's limits, unless the table is wide: the shares
    // say more.
    bool makes_room = false;
};
constexpr std::array kClassColumns{
    ClassColumn{"CLASS", [](const json& at) { return shown(at.at("name")); }},
    ClassColumn{"QUEUED", [](const json& at) { return shown(at.at("queued")); }},
    ClassColumn{"SERVED", [](const json& at) { return shown(at.at("served")); }, true},
    ClassColumn{"PER S", [](const json& at) { return fixed(at.at("rate").get<double>(), 0); }},
    ClassColumn{"BYTES", [](const json& at) { return size_shown(at.at("bytes")); }, true},
    ClassColumn{"BYTES PER S",
                [](const json& at) {
                    return size_of(static_cast<std::uint64_t>(at.at("bytes_rate").get<double>()));
                },
                false, nullptr, true},
    ClassColumn{"THROTTLED", &throttled_shown},
    ClassColumn{"OLDEST", [](const json& at) { return span_shown(at.at("oldest_s")); }},
    ClassColumn{"RESERVED", [](const json& at) { return share_shown(at, "served_reserved"); }, true,
                "shares"},
    ClassColumn{"BY WEIGHT", [](const json& at) { return share_shown(at, "served_by_weight"); },
                true, "shares"},
    ClassColumn{"OVER LIMIT", [](const json& at) { return share_shown(at, "served_over_limit"); },
                true, "shares"},
    ClassColumn{"GRANTED",
                [](const json& at) {
                    return at.contains("shares") ? granted(at.at("shares")) : std::string();
                },
                false, "shares"},
    ClassColumn{"ON ALL NODES",
                [](const json& at) { return turns_shown(at, "queued_on_all_nodes"); }, false,
                "turns"},
    ClassColumn{"TURNS", [](const json& at) { return turns_shown(at, "taken"); }, true, "turns"},
    ClassColumn{"WEIGHT", [](const json& at) { return turns_shown(at, "weight"); }, false, "turns"},
    ClassColumn{"SHARE", &cluster_shown, false, "cluster"},
};

std::string class_table(const json& classes) {
    const auto have = [&classes](const char* object) {
        return std::ranges::any_of(classes,
                                   [object](const json& at) { return at.contains(object); });
    };
    const bool is_full = !are_tables_wide() && (have("turns") || have("cluster"));
    const auto is_shown = [&](const ClassColumn& column) {
        if (column.is_wide && !are_tables_wide()) return false;
        if (column.makes_room && is_full) return false;
        return column.needs == nullptr || have(column.needs);
    };
    std::vector<std::vector<std::string>> rows(1 + classes.size());
    for (const ClassColumn& each : kClassColumns) {
        if (!is_shown(each)) continue;
        rows.front().emplace_back(each.title);
        for (std::size_t i = 0; i < classes.size(); ++i) {
            rows[i + 1].push_back(each.text(classes[i]));
        }
    }
    return table(rows);
}

std::string difference_line(const json& differs) {
    if (differs.empty()) return {};
    return "differs from the file: " + shown(differs) + "; `fopctl lrs save` writes it there\n";
}

// The settings in the form that `lrs set` takes: one line for the section, and one for each policy
// that has settings, or of `policies` has none.
std::string settings_lines(const json& settings, const json& policies) {
    std::string lines;
    json policy;  // Null: the section's own settings.
    for (const json& setting : settings) {
        const bool is_new = setting.at("policy") != policy;
        if (is_new) policy = setting.at("policy");
        if (is_new) lines += "\n" + shown(policy) + ":";
        if (!lines.empty()) lines += " ";
        lines += shown(setting.at("name")) + "=" + setting_text(setting);
    }
    for (const json& each : policies) {
        const bool has_settings = std::ranges::any_of(
            settings, [&each](const json& setting) { return setting.at("policy") == each; });
        if (!has_settings) lines += "\n" + shown(each) + ":";
    }
    return lines + "\n";
}

std::string lrs_page(const json& lrs) {
    const json policies = lrs.contains("policies") ? lrs.at("policies") : json::array();
    return "policy " + shown(lrs.at("policy")) + ", " + shown(lrs.at("queued")) + " queued\n" +
           settings_lines(lrs.at("settings"), policies) + difference_line(lrs.at("differs")) +
           class_table(lrs.at("classes"));
}

void declare_lrs_show(CLI::App& app, VerbArguments& arguments) {
    app.add_flag("--all", arguments.all,
                 "Also show the settings of the policies that are not in force");
}

int run_lrs_show(const Call& call) {
    const char* const target = call.arguments.all ? "/v1/lrs?all=yes" : "/v1/lrs";
    return show_answer(call, call.client.get(target), &lrs_page);
}

// -- changes --

// The daemon accepts no larger body.
constexpr std::size_t kRuleFileBytesMax = 5UL << 20;

// Reads the rules of a file, or of standard input. None: they cannot be read; it has complained.
std::optional<std::string> read_rules(const Call& call, const std::string& file) {
    const bool is_stdin = file == "-";
    const int fd = is_stdin ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    std::string text;
    const int os_errno = fd < 0 ? errno : read_all(fd, kRuleFileBytesMax, text);
    if (fd >= 0 && !is_stdin) ::close(fd);
    if (os_errno == 0 && text.size() <= kRuleFileBytesMax) return text;
    complain(std::string(call.verb) + ": " +
             (os_errno == 0
                  ? core::printable(file) + ": it has more than 5 MiB, and no file of rules has"
                  : file_words(file, os_errno)));
    return std::nullopt;
}

std::string change_page(const json& done) {
    std::string page = done.at("changed").empty()
                           ? std::string("nothing changed\n")
                           : "policy " + shown(done.at("policy")) + "; changed until the next " +
                                 "reload or restart: " + shown(done.at("changed")) + "\n";
    return page + difference_line(done.at("differs"));
}

// The change is done although a rule names a principal that does not exist: such a rule is in force
// and matches nothing until there is one.
int change(const Call& call, const std::string& target, std::string (*page)(const json& done),
           const std::string& body = {}) {
    const auto answer = call.client.post(target, body);
    const auto done = checked(call, answer);
    if (!done) return done.error();
    const int exit_code = show(call, answer->body, [&] { return page(*done); });
    // An older fopd does not send warnings.
    for (const json& each : done->value("warnings", json::array())) {
        if (call.output != Output::kQuiet) client::remark("warning: " + shown(each));
    }
    return exit_code;
}

void declare_lrs_set(CLI::App& app, VerbArguments& arguments) {
    app.add_option("words", arguments.words,
                   "The new policy (without it the current one stays), then KEY=VALUE for its "
                   "settings or those of the section lrs; other settings stay as they are");
    app.add_option("--rules", arguments.file,
                   "A file of rules, one in each line, that replace all rules of the policy; - is "
                   "standard input");
}

int run_lrs_set(const Call& call) {
    std::span<const std::string> words = call.arguments.words;
    const std::string& file = call.arguments.file;
    if (words.empty() && file.empty()) {
        complain("lrs set: nothing to set; give a policy, KEY=VALUE or --rules FILE");
        return kExitUsage;
    }
    std::string target = "/v1/lrs/set";
    std::string policy;  // Empty: the policy in force.
    if (!words.empty() && words.front().find('=') == std::string::npos) {
        policy = words.front();
        words = words.subspan(1);
        target += "?policy=" + in_url(policy);
    }
    std::set<std::string> seen;
    for (const std::string& word : words) {
        const std::size_t end = word.find('=');
        if (end == 0 || end == std::string::npos) {
            complain("lrs set: " + core::printable(word) + " is not KEY=VALUE");
            return kExitUsage;
        }
        const std::string key = word.substr(0, end);
        if (!seen.insert(key).second) {
            complain("lrs set: " + core::printable(key) + " is given twice; write it once");
            return kExitUsage;
        }
        target += target.find('?') == std::string::npos ? '?' : '&';
        target += in_url(policy + "." + key) + "=" + in_url(word.substr(end + 1));
    }
    if (file.empty()) return change(call, target, &change_page);
    const auto rules = read_rules(call, file);
    if (!rules) return kExitRefused;
    target += target.find('?') == std::string::npos ? '?' : '&';
    return change(call, target + "rules=", &change_page, *rules);
}

// -- rules --

std::string joined_words(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
        if (!text.empty()) text += ' ';
        text += word;
    }
    return text;
}

std::string without_rules_line(const json& done) {
    if (done.at("uses_rules").get<bool>()) return {};
    return "the policy is " + shown(done.at("policy")) +
           ", which has no rules; `fopctl lrs set tbf` puts them in force\n";
}

std::string rules_changed_page(const json& done) {
    const auto count = done.at("rules").get<std::uint64_t>();
    return std::to_string(count) + (count == 1 ? " rule" : " rules") + ", version " +
           shown(done.at("version")) + "\n" + difference_line(done.at("differs")) +
           without_rules_line(done);
}

int change_rules(const Call& call, std::string target, const std::string& body = {}) {
    if (call.arguments.if_version) {
        target += target.find('?') == std::string::npos ? '?' : '&';
        target += "if_version=" + std::to_string(*call.arguments.if_version);
    }
    return change(call, target, &rules_changed_page, body);
}

void declare_if_version(CLI::App& app, VerbArguments& arguments) {
    app.add_option("--if-version", arguments.if_version,
                   "Change the rules only if their version, which list shows, is this one")
        ->check(whole_between(0, UINT64_MAX));
}

void declare_rule(CLI::App& app, VerbArguments& arguments) {
    app.add_option("rule", arguments.words, "The rule, in quotes because of the shell")->required();
    declare_if_version(app, arguments);
}

void declare_rule_name(CLI::App& app, VerbArguments& arguments) {
    app.add_option("name", arguments.name, "The name of the rule")->required();
    declare_if_version(app, arguments);
}

void declare_rule_file(CLI::App& app, VerbArguments& arguments) {
    app.add_option("file", arguments.file,
                   "The file, with one rule in each line; - is standard input")
        ->required();
    declare_if_version(app, arguments);
}

int run_rule_add(const Call& call) {
    return change_rules(call,
                        "/v1/lrs/rule/add?rule=" + in_url(joined_words(call.arguments.words)));
}

int run_rule_change(const Call& call) {
    return change_rules(call,
                        "/v1/lrs/rule/change?rule=" + in_url(joined_words(call.arguments.words)));
}

int run_rule_del(const Call& call) {
    return change_rules(call, "/v1/lrs/rule/del?name=" + in_url(call.arguments.name));
}

int run_rule_load(const Call& call) {
    const auto text = read_rules(call, call.arguments.file);
    return text ? change_rules(call, "/v1/lrs/rule/load", *text) : kExitRefused;
}

// Prints the rules in the form that `lrs rule load` reads.
std::string rules_page(const json& rules) {
    std::string page = "# rules of " + shown(rules.at("rules_of")) + ", version " +
                       shown(rules.at("version")) + "\n";
    for (const json& rule : rules.at("rules")) page += shown(rule.at("text")) + "\n";
    return page;
}

int run_rule_list(const Call& call) {
    return show_answer(call, call.client.get("/v1/lrs/rules"), &rules_page);
}

// -- which --

void declare_lrs_which(CLI::App& app, VerbArguments& arguments) {
    app.add_option("request", arguments.words,
                   "Properties of the fop, such as op=read size=4k job=dd.0")
        ->required();
}

std::string which_page(const json& which) {
    std::string page =
        "policy " + shown(which.at("policy")) + ": class " + shown(which.at("class")) + "\n";
    const json& by_rules = which.at("by_rules");
    if (!which.at("uses_rules").get<bool>()) {
        page +=
            "with " + shown(which.at("rules_of")) + ": class " + shown(by_rules.at("class")) + "\n";
    }
    page += "rule " + shown(by_rules.at("text")) + "\n";
    if (which.contains("cluster")) page += "share " + cluster_shown(which) + "\n";
    return page;
}

int run_lrs_which(const Call& call) {
    const std::string target = "/v1/lrs/which?request=";
    return show_answer(call, call.client.get(target + in_url(joined_words(call.arguments.words))),
                       &which_page);
}

// -- save --

// Writes the draft into the file. Returns the exit code if that fails, none otherwise.
std::optional<int> write_draft(const Call& call, const json& draft) {
    const auto path = draft.at("file").get<std::string>();
    const auto file = ReplacedFile::open(path, ReplacedFile::Missing::kProblem);
    if (!file) return complain_about(call, file.error());
    if (file->text() != draft.at("before").get<std::string>()) {
        complain("lrs save: " + core::printable(path) + " has just been changed; try again");
        return kExitTryLater;
    }
    const auto after = draft.at("after").get<std::string>();
    if (after == file->text()) return std::nullopt;
    const auto replaced = file->replace(after);
    if (!replaced) return complain_about(call, replaced.error());
    return std::nullopt;
}

int run_lrs_save(const Call& call) {
    const auto asked = call.client.get("/v1/lrs/draft");
    const auto draft = checked(call, asked);
    if (!draft) return draft.error();
    const bool is_new = !draft->at("differs").empty();
    if (is_new) {
        if (const auto failed = write_draft(call, *draft)) return *failed;
    }
    return show_answer(call, call.client.post("/v1/lrs/saved"), [&](const json& saved) {
        if (!is_new) return shown(saved.at("file")) + " has these settings already\n";
        return "saved in " + shown(saved.at("file")) + ": " + shown(draft->at("differs")) + "\n";
    });
}

constexpr std::array kLrsVerbs{
    Verb{"lrs show", "Show the policy, its settings, and how it treats each class", "lrs show",
         kTimeoutDefault, declare_lrs_show, run_lrs_show},
    Verb{"lrs set", "Change the policy or its settings, until the next reload or restart",
         "lrs set crr quantum=16", kTimeoutDefault, declare_lrs_set, run_lrs_set},
    Verb{"lrs which", "Show the class and the rule of a fop with given properties",
         "lrs which op=read size=4k job=dd.0", kTimeoutDefault, declare_lrs_which, run_lrs_which},
    Verb{"lrs save", "Write the policy and rules in force into the configuration file", "lrs save",
         kTimeoutDefault, nullptr, run_lrs_save},
    Verb{"lrs rule list", "Print the rules, as lrs rule load reads them", "lrs rule list >rules",
         kTimeoutDefault, nullptr, run_rule_list},
    Verb{"lrs rule add", "Add a rule", "lrs rule add 'ann principal=ann rate=500/s'",
         kTimeoutDefault, declare_rule, run_rule_add},
    Verb{"lrs rule change", "Change parts of a rule, and keep the others",
         "lrs rule change 'ann rate=100/s'", kTimeoutDefault, declare_rule, run_rule_change},
    Verb{"lrs rule del", "Remove a rule", "lrs rule del ann", kTimeoutDefault, declare_rule_name,
         run_rule_del},
    Verb{"lrs rule load", "Replace all rules with those of a file", "lrs rule load rules",
         kTimeoutDefault, declare_rule_file, run_rule_load},
};

}  // namespace

std::span<const Verb> lrs_verbs() {
    return kLrsVerbs;
}

}  // namespace fopd::client

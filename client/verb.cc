// SPDX-License-Identifier: BSD-2-Clause
#include "client/verb.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/admin_failure.h"
#include "client/command_line.h"
#include "client/exit_code.h"
#include "client/table.h"

namespace fopd::client {

namespace {

// Prints the words of the daemon, or else the bare status.
void complain_about(const Call& call, int status, const nlohmann::json& body) {
    const std::string verb(call.verb);
    if (!body.is_object() || !body.contains("error")) {
        complain(verb + ": " + call.client.name() + " answered with HTTP status " +
                 std::to_string(status));
        return;
    }
    complain(verb + ": " + shown(body["error"]));
    if (!body.contains("problems")) return;
    for (const auto& problem : body["problems"]) {
        complain_further(shown(problem));
    }
}

}  // namespace

void declare_repetition(CLI::App& app, VerbArguments& arguments, const char* interval_summary,
                        double interval_min_s) {
    app.add_option("--interval", arguments.interval_s, interval_summary)
        ->check(seconds_between(interval_min_s, 86400))
        ->capture_default_str();
    app.add_option("--count", arguments.count, "End after this many; 0: go on until interrupted")
        ->check(whole_between(0, 1'000'000'000))
        ->capture_default_str();
}

CLI::Option* declare_pool(CLI::App& app, VerbArguments& arguments) {
    return app.add_option("--pool", arguments.pool,
                          "The pool; by default the server's default pool");
}

void declare_collection(CLI::App& app, VerbArguments& arguments) {
    app.add_option("--collection", arguments.collection,
                   "Objects of one collection are kept together on tape; by default "
                   "those of one group are");
}

void declare_explain(CLI::App& app, VerbArguments& arguments) {
    app.add_flag("--explain", arguments.explain, "Print what the time of the fops was spent on");
}

int complain_about(const Call& call, std::string_view words, int exit_code) {
    complain(std::string(call.verb) + ": " + std::string(words));
    return exit_code;
}

int complain_about(const Call& call, const ReplacedFile::Problem& problem) {
    using Kind = ReplacedFile::Failure;
    return complain_about(call, problem.words,
                          problem.failure == Kind::kBusy     ? kExitTryLater
                          : problem.failure == Kind::kDenied ? kExitNotAllowed
                                                             : kExitRefused);
}

bool print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
        std::fflush(stdout) == 0) {
        return true;
    }
    complain("standard output: " + std::system_category().message(errno));
    return false;
}

int show(const Call& call, const std::string& json, const std::function<std::string()>& page) {
    if (call.output == Output::kQuiet) return kExitDone;
    const std::string text = call.output == Output::kPage
                                 ? page()
                                 : json.substr(0, json.find_last_not_of("\r\n") + 1) + "\n";
    return print(text) ? kExitDone : kExitRefused;
}

int show_answer(const Call& call, const std::expected<HttpAnswer, AdminProblem>& answer,
                const std::function<std::string(const nlohmann::json& body)>& page) {
    const auto body = checked(call, answer);
    if (!body) return body.error();
    return show(call, answer->body, [&] { return page(*body); });
}

int show_json(const Call& call, const nlohmann::ordered_json& object) {
    if (call.output != Output::kJson) return kExitDone;
    return print(dumped(object) + "\n") ? kExitDone : kExitRefused;
}

std::expected<nlohmann::json, int> checked(const Call& call,
                                           const std::expected<HttpAnswer, AdminProblem>& answer) {
    if (!answer) {
        complain(answer.error().message);
        return std::unexpected(row_of(answer.error().kind).exit_code);
    }
    auto body = nlohmann::json::parse(answer->body, nullptr, false);
    if (answer->status != 200) {
        complain_about(call, answer->status, body);
        // An older fopd does not know the path of the request.
        const bool is_unknown =
            answer->status == 404 && body.is_object() && body.value("error", "") == "no such path";
        return std::unexpected(is_unknown ? kExitNoServer : exit_code_of(answer->status));
    }
    if (body.is_structured()) return body;
    complain("the program at " + call.client.name() +
             " is not fopd: its reply is not a JSON object");
    return std::unexpected(kExitNoServer);
}

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#include "client/object_run.h"

#include <cstdio>
#include <vector>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "client/exit_code.h"
#include "client/explanation.h"
#include "core/printable.h"
#include "fop/name.h"

namespace fopd::client {

namespace {

constexpr std::size_t kLabelMax = 40;

// Checks the names before anything is sent: the server would refuse them with another exit code.
bool are_names(const Call& call) {
    std::vector<std::string> all = call.arguments.names;
    if (call.verb == "mv") all.push_back(call.arguments.new_name);
    for (const std::string& name : all) {
        if (const auto good = fop::check_object_name(name); !good) {
            complain(std::string(call.verb) + ": " + core::printable(name) + ": " +
                     good.error().context);
            return false;
        }
    }
    return true;
}

}  // namespace

std::expected<ObjectSession*, ObjectSession::Failure> SharedSession::open(
    const ObjectSession::Options& options) {
    const bool is_same =
        session_ != nullptr && options.endpoint == options_.endpoint && options.job == options_.job;
    if (is_same) return session_.get();
    close();
    auto opened = ObjectSession::open(options);
    if (!opened) return std::unexpected(std::move(opened.error()));
    session_ = std::move(*opened);
    options_ = options;
    return session_.get();
}

Result<core::Offload*> SharedSession::offload() {
    if (offload_ == nullptr) {
        auto made = core::make_thread_offload({.name = "fopctl-files"});
        if (!made) return std::unexpected(made.error());
        offload_ = std::move(*made);
    }
    return offload_.get();
}

namespace {

// No deadline: the user may type the next line at any time.
Task<bool> wait_for(core::Reactor* reactor, int fd, Interrupts* interrupts) {
    core::CancelSource cancel;
    CancelledBy interrupt(*reactor, interrupts->fd(), cancel);
    const auto ready = co_await reactor->poll(fd, POLLIN, {.cancel = &cancel});
    co_await interrupt.close();
    co_return ready.has_value();
}

}  // namespace

bool SharedSession::wait(int fd, Interrupts& interrupts) {
    if (session_ == nullptr) return interrupts.wait(fd, 24h * 365);
    if (session_->run(wait_for(&session_->reactor(), fd, &interrupts))) return true;
    interrupts.take();
    return false;
}

ObjectSession::Options session_options(const Call& call) {
    return {.endpoint = {.server = call.remote.server,
                         .key_file = call.remote.key_file,
                         .token = call.remote.token,
                         .protect = call.remote.protect},
            .job = call.remote.job,
            .connect_max = call.timeout};
}

std::string advice(const Call& call, ObjectSession::Failure::Kind kind) {
    using Kind = ObjectSession::Failure::Kind;
    if (kind == Kind::kUnreachable) {
        return "; is fopd running there? --server ADDRESS or FOPD_SERVER names the server";
    }
    if (kind != Kind::kDenied) return {};
    if (call.remote.key_file.empty()) return "; --key FILE or FOPD_KEY names the file of your key";
    return "; the key is that of " + core::printable(call.remote.key_file);
}

int complain_about(const Call& call, const ObjectSession::Failure& failure) {
    return complain_about(call, failure.words + advice(call, failure.kind),
                          exit_code_of(failure.kind));
}

int ObjectRun::complain_about(std::string_view name, const Problem& problem) const {
    if (interrupts_.taken()) return kExitRefused;  // The user has stopped it, and knows.
    std::string text(call.verb);
    if (!name.empty()) text += ": " + core::printable(name);
    if (problem.status == fop::Status::kWrongPool && !arguments.pool.empty()) {
        text += ": pool " + core::printable(arguments.pool);
    }
    complain(text + ": " + problem.words);
    note_error_code(is_misuse(problem)       ? "usage"
                    : problem.is_unreachable ? "no_server"
                                             : fop::to_string(problem.status));
    return client::exit_code_of(problem);
}

int ObjectRun::complain_about(const Problem& problem) const {
    return complain_about(arguments.names.empty() ? std::string() : this->name(), problem);
}

int ObjectRun::done(nlohmann::ordered_json result) {
    if (times != nullptr) result["explain"] = explanation_json(times->figures());
    has_result_ = true;
    return show_json(call, result);
}

int ObjectRun::done(const Outcome<void>& outcome, const nlohmann::ordered_json& result) {
    return outcome ? done(result) : complain_about(outcome.error());
}

ProgressLine::Options ObjectRun::progress(std::uint64_t total_bytes) const {
    std::string label = core::printable(name()).substr(0, kLabelMax);
    const bool wanted = call.output == Output::kPage;
    if (wanted && ::isatty(STDERR_FILENO) == 1) objects.tape().report_waiting();
    return {.label = std::string(call.verb) + " " + label,
            .total_bytes = total_bytes,
            .wanted = wanted,
            .tape = &objects.tape().waiting()};
}

Task<int> ObjectRun::guarded(Body body) {
    core::Gate gate;
    reactor.spawn(gate, watch());
    const int exit_code = co_await body(this);
    ended_.cancel();
    co_await gate.close(reactor);
    co_return exit_code;
}

Task<void> ObjectRun::watch() {
    const auto readable = co_await reactor.poll(interrupts_.fd(), POLLIN, {.cancel = &ended_});
    if (!readable) co_return;
    interrupts_.take();
    cancel.cancel();
}

int run_object_verb(const Call& call, ObjectRun::Body body) {
    if (!are_names(call)) return kExitUsage;
    Interrupts interrupts(call.source.is_typed ? Interrupts::Usual::kInterrupt
                                               : Interrupts::Usual::kNothing);
    TimeLedger times;
    SharedSession own;
    // The ledger is told of all that happens in its session, so both are the verb's own.
    const bool is_alone = call.source.shared == nullptr || call.arguments.explain;
    SharedSession& shared = is_alone ? own : *call.source.shared;
    ObjectSession::Options options = session_options(call);
    if (call.arguments.explain) options.times = &times;
    options.interrupt_fd = interrupts.fd();
    auto session = shared.open(options);
    if (!session && !interrupts.wait(-1, Duration::zero())) return kExitRefused;
    if (!session) return complain_about(call, session.error());
    const auto offload = shared.offload();
    if (!offload) {
        complain(describe(offload.error()));
        return kExitInternal;
    }
    ObjectRun run(call, **session, **offload, interrupts);
    run.times = options.times == nullptr ? nullptr : &times;
    const int exit_code = run(body);
    // With --json the explanation is a part of the result. There is none if standard output has the
    // bytes of an object.
    const TimeLedger::Figures figures = times.figures();
    if (run.times != nullptr && call.output == Output::kPage) {
        std::fputs(explanation(figures).c_str(), stderr);
    } else if (run.times != nullptr && call.output == Output::kJson && !run.has_result()) {
        const nlohmann::ordered_json object{{"explain", explanation_json(figures)}};
        std::fputs((object.dump() + "\n").c_str(), stderr);
    }
    return exit_code;
}

}  // namespace fopd::client

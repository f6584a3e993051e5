// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/command_line.h"
#include "client/exit_code.h"
#include "client/explanation.h"
#include "client/interrupts.h"
#include "client/load.h"
#include "client/object_load.h"
#include "client/object_run.h"
#include "client/table.h"
#include "client/verb.h"
#include "core/clock.h"
#include "core/histogram.h"
#include "fop/name.h"
#include "fop/range.h"

namespace fopd::client {

namespace {

// The warm-up ends before the measurement: connections, credits and caches are settled by then.
constexpr double kWarmUpShare = 0.1;
constexpr double kWarmUpMax = 1;

libfopd::Options options_of(const Call& call) {
    libfopd::Options options;
    options.server = call.remote.server;
    options.key_file = call.remote.key_file;
    options.token = call.remote.token;
    options.protect = call.remote.protect;
    options.job = call.remote.job;
    options.timeout = std::chrono::ceil<std::chrono::microseconds>(call.timeout);
    options.explain = call.arguments.explain;
    return options;
}

// Prints why there is no answer. Returns the exit code.
int complain_about_outcome(const Call& call, const libfopd::Outcome& outcome) {
    using Kind = ObjectSession::Failure::Kind;
    const Kind kind = outcome.status == libfopd::Status::kUnreachable ? Kind::kUnreachable
                      : outcome.status == libfopd::Status::kDenied    ? Kind::kDenied
                                                                      : Kind::kFailed;
    // A key file or an address is invalid, and nothing was sent.
    const bool is_misuse = outcome.status == libfopd::Status::kInvalid;
    return client::complain_about(call, outcome.words + advice(call, kind),
                                  is_misuse ? kExitUsage : exit_code_of(outcome.status));
}

double microseconds(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1000;
}

// -- ping --

// The answer to one ping. The descriptor becomes readable when it arrives.
class Pong {
public:
    Pong() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Pong() {
        if (fd_ >= 0) close(fd_);
    }
    Pong(const Pong&) = delete;
    Pong& operator=(const Pong&) = delete;

    int fd() const { return fd_; }
    void set(const libfopd::Outcome& outcome, Instant at) {
        const std::lock_guard lock(mutex_);
        outcome_ = outcome;
        at_ = at;
        eventfd_write(fd_, 1);
    }
    std::optional<libfopd::Outcome> take(Instant& at) {
        const std::lock_guard lock(mutex_);
        eventfd_t count = 0;
        eventfd_read(fd_, &count);
        at = at_;
        return std::exchange(outcome_, std::nullopt);
    }

private:
    const int fd_;
    std::mutex mutex_;
    std::optional<libfopd::Outcome> outcome_;
    Instant at_;
};

void declare_ping(CLI::App& app, VerbArguments& arguments) {
    declare_repetition(app, arguments, "Seconds between two pings", 0);
}

struct Pings {
    std::uint64_t sent = 0;
    core::Histogram answered;
    std::uint64_t min_ns = UINT64_MAX;
};

std::string summary_of(const Call& call, const Pings& pings) {
    const std::uint64_t answered = pings.answered.count();
    const double average =
        answered > 0 ? microseconds(pings.answered.sum()) / static_cast<double>(answered) : 0;
    const double min = answered > 0 ? microseconds(pings.min_ns) : 0;
    const double p99 = microseconds(pings.answered.percentile(0.99));
    if (call.output == Output::kJson) {
        const nlohmann::ordered_json object{{"server", call.remote.server},
                                            {"sent", pings.sent},
                                            {"answered", answered},
                                            {"min_us", min},
                                            {"avg_us", average},
                                            {"p99_us", p99},
                                            {"max_us", microseconds(pings.answered.max())}};
        return dumped(object) + "\n";
    }
    std::string text =
        std::to_string(pings.sent) + " sent, " + std::to_string(answered) + " answered";
    if (answered > 0) {
        text += ", min/avg/p99 " + fixed(min, 1) + "/" + fixed(average, 1) + "/" + fixed(p99, 1) +
                " us";
    }
    return text + "\n";
}

int run_ping(const Call& call) {
    const core::PosixClock clock;
    Interrupts interrupts(Interrupts::Usual::kInterrupt);
    Pong pong;  // Outlives the client, which may still set it.
    libfopd::Client client;
    if (const libfopd::Outcome opened = libfopd::Client::open(options_of(call), client); !opened) {
        return complain_about_outcome(call, opened);
    }
    const auto interval = from_seconds(call.arguments.interval_s);
    Pings pings;
    int exit_code = kExitDone;
    client.connected({}, [&](const libfopd::Outcome& outcome) { pong.set(outcome, clock.now()); });
    Instant answered_at;
    bool going_on = interrupts.wait(pong.fd(), call.timeout + 1s);
    const auto connected = going_on ? pong.take(answered_at) : libfopd::Outcome{};
    if (connected && !*connected) return complain_about_outcome(call, *connected);
    while (going_on) {
        const Instant begun = clock.now();
        ++pings.sent;
        client.ping({}, [&](const libfopd::Outcome& outcome) { pong.set(outcome, clock.now()); });
        going_on = interrupts.wait(pong.fd(), call.timeout + 1s);
        const auto outcome = pong.take(answered_at);
        if (outcome && !*outcome) {
            exit_code = complain_about_outcome(call, *outcome);
            if (exit_code == kExitNotAllowed) break;
        } else if (outcome) {
            const auto span = static_cast<std::uint64_t>((answered_at - begun).count());
            pings.answered.record(span);
            pings.min_ns = std::min(pings.min_ns, span);
            if (call.output == Output::kPage &&
                !print("pong from " + shown(call.remote.server) +
                       ": seq=" + std::to_string(pings.sent) +
                       " time=" + fixed(microseconds(span), 1) + " us\n")) {
                return kExitRefused;
            }
        }
        if (pings.sent == call.arguments.count) break;
        if (going_on) going_on = interrupts.wait(-1, begun + interval - clock.now());
    }
    client.close();
    if (call.output != Output::kQuiet && !print(summary_of(call, pings))) return kExitRefused;
    return exit_code;
}

// -- bench --

// An operation that bench measures, on messages or on objects.
struct OpName {
    const char* name;
    std::optional<LoadOp> op;
    ObjectOp object_op = ObjectOp::kRead;
};
constexpr std::array kOps{OpName{"echo", LoadOp::kEcho},
                          OpName{"bulk_echo", LoadOp::kBulkEcho},
                          OpName{"ping", LoadOp::kPing},
                          OpName{"read", std::nullopt, ObjectOp::kRead},
                          OpName{"write", std::nullopt, ObjectOp::kWrite},
                          OpName{"mixed", std::nullopt, ObjectOp::kMixed},
                          OpName{"create", std::nullopt, ObjectOp::kCreate}};

void declare_bench(CLI::App& app, VerbArguments& arguments) {
    std::vector<std::string> names;
    for (const OpName& each : kOps) names.emplace_back(each.name);
    app.add_option("--op", arguments.op,
                   "The operation: echo, bulk_echo or ping; read, write or mixed of objects; or "
                   "create, which makes empty ones")
        ->check(one_of(names))
        ->capture_default_str();
    app.add_option("--size", arguments.size_bytes,
                   "Bytes of each read, write or echo, such as 64, 4k or 1M")
        ->transform(size_between(0, std::uint64_t{1} << 30))
        ->default_str("4k");
    app.add_option("--depth", arguments.depth, "Calls in flight in each job")
        ->check(whole_between(1, 100'000))
        ->capture_default_str();
    app.add_option("--jobs", arguments.jobs, "How many sessions, each with its own thread")
        ->check(whole_between(1, 1024))
        ->capture_default_str();
    app.add_option("--seconds", arguments.seconds, "The time of the measurement")
        ->check(seconds_between(0.001, 1e6))
        ->capture_default_str();
    app.add_flag("--durable", arguments.durable, "Wait until each write is durable");
    app.add_option("--pool", arguments.pool,
                   "The pool of the objects; by default the default pool");
    app.add_option("--object", arguments.object,
                   "All jobs use this object, which is made if it is missing, and stays; by "
                   "default each job makes one and removes it. With create: keep the new objects; "
                   "their names begin with this");
    app.add_option("--object-size", arguments.object_bytes, "The size of objects that are made")
        ->transform(size_between(1, fop::kOffsetMax))
        ->default_str("64M");
    declare_explain(app, arguments);
}

// The measurement, or the exit code after a complaint.
using Measured = std::expected<std::unique_ptr<LoadResult>, int>;

Measured measure_messages(const Call& call, LoadOp op, std::uint64_t size_bytes,
                          Interrupts& interrupts) {
    const VerbArguments& asked = call.arguments;
    auto done =
        run_load({.server = options_of(call),
                  .op = op,
                  .size_bytes = size_bytes,
                  .explain = asked.explain,
                  .depth = asked.depth,
                  .jobs = asked.jobs,
                  .warm_up = from_seconds(std::min(asked.seconds * kWarmUpShare, kWarmUpMax)),
                  .window = from_seconds(asked.seconds)},
                 interrupts);
    if (!done) return std::unexpected(complain_about_outcome(call, done.error()));
    return std::move(*done);
}

Measured measure_objects(const Call& call, ObjectOp op, Interrupts& interrupts) {
    const VerbArguments& asked = call.arguments;
    if (op != ObjectOp::kCreate &&
        (asked.size_bytes == 0 || asked.size_bytes > asked.object_bytes)) {
        complain("bench: --size is at least 1 and at most --object-size");
        return std::unexpected(kExitUsage);
    }
    if (!asked.object.empty()) {
        if (const auto good = fop::check_object_name(asked.object); !good) {
            complain("bench: --object: " + std::string(good.error().context));
            return std::unexpected(kExitUsage);
        }
    }
    auto done = run_object_load(
        {.server = session_options(call),
         .op = op,
         .size_bytes = asked.size_bytes,
         .explain = asked.explain,
         .depth = asked.depth,
         .jobs = asked.jobs,
         .warm_up = from_seconds(std::min(asked.seconds * kWarmUpShare, kWarmUpMax)),
         .window = from_seconds(asked.seconds),
         .timeout = call.timeout,
         .durability = asked.durable ? fop::Durability::kDurable : fop::Durability::kBuffered,
         .pool = asked.pool,
         .object = asked.object,
         .object_bytes = asked.object_bytes},
        interrupts);
    if (done) return std::move(*done);
    if (done.error().no_session) {
        return std::unexpected(client::complain_about(call, *done.error().no_session));
    }
    const Problem& problem = done.error().problem;
    std::string text = "bench: ";
    if (!asked.object.empty()) text += shown(asked.object) + ": ";
    if (problem.status == fop::Status::kWrongPool && !asked.pool.empty()) {
        text += "pool " + shown(asked.pool) + ": ";
    }
    complain(text + problem.words);
    return std::unexpected(exit_code_of(problem));
}

int run_bench(const Call& call) {
    const VerbArguments& asked = call.arguments;
    const OpName& row = *std::ranges::find(
        kOps, asked.op, [](const OpName& each) { return std::string(each.name); });
    if (row.op == LoadOp::kBulkEcho && asked.size_bytes == 0) {
        complain("bench: bulk_echo needs a --size");
        return kExitUsage;
    }
    if (row.op == LoadOp::kBulkEcho && asked.size_bytes > fop::kBulkEchoBytesMax) {
        complain("bench: bulk_echo takes a --size of at most 16M");
        return kExitUsage;
    }
    const bool moves_nothing = row.op == LoadOp::kPing || row.object_op == ObjectOp::kCreate;
    const std::uint64_t size_bytes = moves_nothing ? 0 : asked.size_bytes;
    Interrupts interrupts(Interrupts::Usual::kNothing);
    const Measured done = row.op ? measure_messages(call, *row.op, size_bytes, interrupts)
                                 : measure_objects(call, row.object_op, interrupts);
    if (!done) return done.error();
    const LoadResult& result = **done;
    const double seconds = in_seconds(result.window);
    const double ops_per_s =
        seconds > 0 ? static_cast<double>(result.latency.count()) / seconds : 0;
    const auto percentile = [&result](double share) {
        return microseconds(result.latency.percentile(share));
    };
    nlohmann::ordered_json object{{"op", asked.op},
                                  {"size", size_bytes},
                                  {"depth", asked.depth},
                                  {"jobs", asked.jobs},
                                  {"seconds", seconds},
                                  {"ops", result.latency.count()},
                                  {"ops_per_s", ops_per_s},
                                  {"bytes_per_s", ops_per_s * static_cast<double>(size_bytes)},
                                  {"p50_us", percentile(0.5)},
                                  {"p99_us", percentile(0.99)},
                                  {"p999_us", percentile(0.999)},
                                  {"errors", result.errors},
                                  {"interrupted", result.interrupted}};
    if (result.times != nullptr) object["explain"] = load_explanation_json(*result.times);
    const int printed = show(call, dumped(object), [&] {
        return (result.interrupted ? "interrupted: " : "") + asked.op + "  " +
               std::to_string(size_bytes) + " B  depth " + std::to_string(asked.depth) + "  jobs " +
               std::to_string(asked.jobs) + "  " + fixed(seconds, 1) + " s\n" +
               std::to_string(result.latency.count()) + " ops, " + fixed(ops_per_s, 0) + "/s, " +
               fixed(ops_per_s * static_cast<double>(size_bytes) / 1e6, 1) +
               " MB/s\np50/p99/p999 " + fixed(percentile(0.5), 1) + "/" +
               fixed(percentile(0.99), 1) + "/" + fixed(percentile(0.999), 1) + " us\n" +
               std::to_string(result.errors) + " errors\n" +
               (result.times == nullptr ? "" : load_explanation(*result.times));
    });
    if (!result.first_error.empty()) complain("bench: the first error: " + result.first_error);
    return printed != kExitDone ? printed : result.errors > 0 ? kExitRefused : kExitDone;
}

constexpr std::array kFabricVerbs{
    Verb{"ping", "Measure the round trip to the server", "ping --count 3", kTimeoutDefault,
         declare_ping, run_ping},
    Verb{"bench", "Put load on the server and measure it", "bench --op read --size 4k --depth 32",
         kTimeoutDefault, declare_bench, run_bench},
};

}  // namespace

std::span<const Verb> fabric_verbs() {
    return kFabricVerbs;
}

}  // namespace fopd::client

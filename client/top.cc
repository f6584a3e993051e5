// SPDX-License-Identifier: BSD-2-Clause
#include "client/top.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <ctime>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/exit_code.h"
#include "client/table.h"

namespace fopd::client {

namespace {

using nlohmann::json;

// How many classes of the request scheduler are shown.
constexpr std::size_t kClassesMax = 20;

// The counters of a locality; with double, their rates per second.
template <typename Count>
struct Locality {
    std::uint64_t index = 0;
    json core;
    double busy = 0;  // Seconds; of rates, the share of the time.
    Count turns = 0;
    Count sleeps = 0;
    Count resumed = 0;
    Count io = 0;
    Count messages = 0;
    std::uint64_t buffers_free = 0;
};
using LocalitySample = Locality<std::uint64_t>;
using LocalityRates = Locality<double>;

struct ClassSample {
    std::string name;
    std::uint64_t queued = 0;
    std::uint64_t served = 0;
    std::uint64_t bytes = 0;
    double throttled_s = 0;
    double oldest_s = 0;
};

// The figures of the daemon at one time.
struct Sample {
    std::string name;
    std::string state;
    std::int64_t pid = 0;
    double uptime_s = 0;
    std::vector<LocalitySample> localities;
    std::vector<ClassSample> classes;
};

std::vector<ClassSample> classes_of(const json& lrs) {
    std::vector<ClassSample> classes;
    for (const json& at : lrs.at("classes")) {
        classes.push_back({.name = shown(at.at("name")),
                           .queued = at.at("queued").get<std::uint64_t>(),
                           .served = at.at("served").get<std::uint64_t>(),
                           .bytes = at.at("bytes").get<std::uint64_t>(),
                           .throttled_s = at.at("throttled_s").get<double>(),
                           .oldest_s = at.at("oldest_s").get<double>()});
    }
    return classes;
}

Sample sample_of(const json& status) {
    Sample sample{.name = shown(status.at("name")),
                  .state = shown(status.at("state")),
                  .pid = status.at("pid").get<std::int64_t>(),
                  .uptime_s = status.at("uptime_s").get<double>(),
                  .localities = {},
                  .classes = {}};
    for (const json& at : status.at("localities")) {
        sample.localities.push_back({.index = at.at("index").get<std::uint64_t>(),
                                     .core = at.value("core", json()),
                                     .busy = at.at("busy_s").get<double>(),
                                     .turns = at.at("turns").get<std::uint64_t>(),
                                     .sleeps = at.at("sleeps").get<std::uint64_t>(),
                                     .resumed = at.at("resumed").get<std::uint64_t>(),
                                     .io = at.at("io_completed").get<std::uint64_t>(),
                                     .messages = at.at("messages").get<std::uint64_t>(),
                                     .buffers_free = at.at("buffers_free").get<std::uint64_t>()});
    }
    return sample;
}

struct ClassRates {
    std::string name;
    std::uint64_t queued = 0;
    double served = 0;
    double bytes = 0;
    double throttled = 0;  // Share of the time, in all localities together.
    double oldest_s = 0;
};

struct Rates {
    double interval_s = 0;
    std::vector<LocalityRates> localities;
    std::vector<ClassRates> classes;  // By the number of queued requests, the most first.
};

// False after a restart of the daemon.
bool are_comparable(const Sample& before, const Sample& now) {
    return before.pid == now.pid && now.uptime_s > before.uptime_s &&
           before.localities.size() == now.localities.size();
}

Rates rates_between(const Sample& before, const Sample& now) {
    Rates rates{.interval_s = now.uptime_s - before.uptime_s, .localities = {}, .classes = {}};
    const auto rate = [&](std::uint64_t from, std::uint64_t to) {
        return to > from ? static_cast<double>(to - from) / rates.interval_s : 0;
    };
    for (std::size_t i = 0; i < now.localities.size(); ++i) {
        const LocalitySample& a = before.localities[i];
        const LocalitySample& b = now.localities[i];
        const double busy = (b.busy - a.busy) / rates.interval_s;
        rates.localities.push_back({.index = b.index,
                                    .core = b.core,
                                    .busy = std::clamp(busy, 0.0, 1.0),
                                    .turns = rate(a.turns, b.turns),
                                    .sleeps = rate(a.sleeps, b.sleeps),
                                    .resumed = rate(a.resumed, b.resumed),
                                    .io = rate(a.io, b.io),
                                    .messages = rate(a.messages, b.messages),
                                    .buffers_free = b.buffers_free});
    }
    for (const ClassSample& b : now.classes) {
        const auto known = std::ranges::find(before.classes, b.name, &ClassSample::name);
        // The counters of a class may have begun again at 0.
        const bool is_same = known != before.classes.end() && known->served <= b.served;
        const ClassSample a = is_same ? *known : ClassSample{};
        const double throttled = (b.throttled_s - a.throttled_s) / rates.interval_s;
        rates.classes.push_back({.name = b.name,
                                 .queued = b.queued,
                                 .served = is_same ? rate(a.served, b.served) : 0,
                                 .bytes = is_same ? rate(a.bytes, b.bytes) : 0,
                                 .throttled = is_same ? std::max(0.0, throttled) : 0,
                                 .oldest_s = b.oldest_s});
    }
    std::ranges::sort(rates.classes, std::ranges::greater(), [](const ClassRates& of) {
        return std::tuple(of.queued, of.throttled, of.served, std::string_view(of.name));
    });
    if (rates.classes.size() > kClassesMax) rates.classes.resize(kClassesMax);
    return rates;
}

std::string classes_page(const std::vector<ClassRates>& classes) {
    if (classes.empty()) return {};
    std::vector<std::vector<std::string>> rows{
        {"CLASS", "QUEUED", "SERVED/S", "BYTES/S", "THROTTLED %", "OLDEST"}};
    for (const ClassRates& at : classes) {
        rows.push_back({at.name, std::to_string(at.queued), fixed(at.served, 0),
                        size_of(static_cast<std::uint64_t>(at.bytes)), fixed(at.throttled * 100, 1),
                        span_of(at.oldest_s)});
    }
    return "\n" + table(rows);
}

std::string page_of(const Sample& now, const Rates& rates) {
    std::vector<std::vector<std::string>> rows{{"LOCALITY", "CORE", "BUSY %", "TURNS/S", "SLEEPS/S",
                                                "RESUMED/S", "I/O/S", "MESSAGES/S",
                                                "BUFFERS FREE"}};
    for (const LocalityRates& at : rates.localities) {
        rows.push_back({std::to_string(at.index), shown(at.core), fixed(at.busy * 100, 1),
                        fixed(at.turns, 0), fixed(at.sleeps, 0), fixed(at.resumed, 0),
                        fixed(at.io, 0), fixed(at.messages, 0), std::to_string(at.buffers_free)});
    }
    return now.name + "  " + now.state + "  up " + span_of(now.uptime_s) + "\n" + table(rows) +
           classes_page(rates.classes);
}

std::string json_of(const Rates& rates) {
    nlohmann::ordered_json object{{"interval_s", rates.interval_s}};
    object["localities"] = nlohmann::ordered_json::array();
    for (const LocalityRates& at : rates.localities) {
        object["localities"].push_back({{"index", at.index},
                                        {"core", at.core},
                                        {"busy", at.busy},
                                        {"turns_per_s", at.turns},
                                        {"sleeps_per_s", at.sleeps},
                                        {"resumed_per_s", at.resumed},
                                        {"io_per_s", at.io},
                                        {"messages_per_s", at.messages},
                                        {"buffers_free", at.buffers_free}});
    }
    object["classes"] = nlohmann::ordered_json::array();
    for (const ClassRates& at : rates.classes) {
        object["classes"].push_back({{"name", at.name},
                                     {"queued", at.queued},
                                     {"served_per_s", at.served},
                                     {"bytes_per_s", at.bytes},
                                     {"throttled", at.throttled},
                                     {"oldest_s", at.oldest_s}});
    }
    return dumped(object) + "\n";
}

timespec timespec_of(double seconds) {
    timespec time{};
    time.tv_sec = static_cast<time_t>(seconds);
    time.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
    return time;
}

// The output of the blocks of figures, and the wait between them.
class Screen {
public:
    virtual ~Screen() = default;
    virtual bool show(const std::string& block) = 0;
    // False when the user has ended the program, or the reader has gone.
    virtual bool wait(double seconds) = 0;
    // Becomes readable when the caller must call wait() at once; -1: never.
    virtual int interrupt_fd() const = 0;
};

class Stream final : public Screen {
public:
    explicit Stream(Output output) : output_(output) {}
    bool show(const std::string& block) override {
        return output_ == Output::kQuiet || print(block);
    }
    // Ends at once when the reader of a pipe has gone.
    bool wait(double seconds) override {
        const timespec time = timespec_of(seconds);
        pollfd reader{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
        return ppoll(&reader, 1, &time, nullptr) == 0 || (reader.revents & POLLERR) == 0;
    }
    int interrupt_fd() const override { return -1; }

private:
    const Output output_;
};

// The alternate screen. The signals that end or stop a program are taken in wait(), so that the
// terminal is always given back first; the descriptor says that one has come.
class Terminal final : public Screen {
public:
    Terminal() {
        sigemptyset(&taken_);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) {
            sigaddset(&taken_, number);
        }
        sigprocmask(SIG_BLOCK, &taken_, &before_);
        // If this fails, a signal does not interrupt a request.
        signal_fd_ = signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK);
        print(kEnter);
    }
    ~Terminal() override {
        print(kLeave);
        if (signal_fd_ >= 0) close(signal_fd_);
        sigprocmask(SIG_SETMASK, &before_, nullptr);
        if (ended_by_ != 0) {
            // Ends by the same signal, so that the parent process sees it.
            std::signal(ended_by_, SIG_DFL);
            std::raise(ended_by_);
        }
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    bool show(const std::string& block) override {
        std::string frame = "\x1b[H";
        for (const char c : block) {
            if (c == '\n') frame += "\x1b[K";
            frame += c;
        }
        return print(frame + "\x1b[J");
    }

    bool wait(double seconds) override {
        const timespec time = timespec_of(seconds);
        const int number = sigtimedwait(&taken_, nullptr, &time);
        if (number == SIGTSTP) {
            print(kLeave);
            std::raise(SIGSTOP);
            print(kEnter);
            return true;
        }
        if (number > 0) ended_by_ = number;
        return ended_by_ == 0;
    }
    int interrupt_fd() const override { return signal_fd_; }

private:
    static constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l\x1b[2J";
    static constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

    sigset_t taken_{};
    sigset_t before_{};
    int signal_fd_ = -1;
    int ended_by_ = 0;
};

// Gets an answer. None: the user has ended the program. Signals are handled while waiting.
std::optional<std::expected<HttpAnswer, AdminProblem>> ask(const Call& call, Screen& screen,
                                                           const char* path) {
    for (;;) {
        auto answer = call.client.get(path, screen.interrupt_fd());
        if (answer || answer.error().kind != AdminFailure::kInterrupted) return answer;
        if (!screen.wait(0)) return std::nullopt;
    }
}

// The localities answer for the classes: while one is stuck, classes are not asked for.
bool may_have_classes(const json& status) {
    return std::ranges::none_of(status.at("localities"),
                                [](const json& at) { return at.at("state") == "stuck"; });
}

// The figures, or the exit code after a complaint.
std::expected<Sample, int> look(const Call& call, Screen& screen) {
    const auto answer = ask(call, screen, "/v1/status");
    if (!answer) return std::unexpected(kExitDone);
    const auto status = checked(call, *answer);
    if (!status) return std::unexpected(status.error());
    Sample sample = sample_of(*status);
    if (!may_have_classes(*status)) return sample;
    const auto lrs = ask(call, screen, "/v1/lrs");
    if (!lrs) return std::unexpected(kExitDone);
    // There are no classes while the node starts or stops.
    const bool has_classes = lrs->has_value() && (*lrs)->status == 200;
    if (has_classes) sample.classes = classes_of(json::parse((*lrs)->body));
    return sample;
}

int show_rates(const Call& call, Screen& screen) {
    auto first = look(call, screen);
    if (!first) return first.error();
    Sample before = *std::move(first);
    std::uint64_t shown_count = 0;
    while (screen.wait(call.arguments.interval_s)) {
        auto next = look(call, screen);
        if (!next) return next.error();
        Sample now = *std::move(next);
        if (are_comparable(before, now)) {
            const Rates rates = rates_between(before, now);
            const std::string block =
                call.output == Output::kJson ? json_of(rates) : page_of(now, rates);
            if (!screen.show(block)) return kExitRefused;
            if (++shown_count == call.arguments.count) return kExitDone;
        }
        before = std::move(now);
    }
    return kExitDone;
}

}  // namespace

void declare_top(CLI::App& app, VerbArguments& arguments) {
    declare_repetition(app, arguments, "Seconds between two looks", 0.01);
}

int run_top(const Call& call) {
    if (call.output == Output::kPage && isatty(STDOUT_FILENO) == 1) {
        Terminal terminal;
        return show_rates(call, terminal);
    }
    Stream stream(call.output);
    return show_rates(call, stream);
}

}  // namespace fopd::client

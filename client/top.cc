// SPDX-License-Identifier: BSD-2-Clause
#include "client/top.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "client/exit_code.h"
#include "client/interrupts.h"
#include "client/top_figures.h"
#include "client/top_view.h"
#include "core/clock.h"

namespace fopd::client {

namespace {

using nlohmann::json;

timespec timespec_of(Duration span) {
    const Duration time = std::max(span, Duration::zero());
    return {.tv_sec = static_cast<time_t>(time / 1s),
            .tv_nsec = static_cast<long>((time % 1s).count())};
}

// The output of the figures, and the wait between two looks.
class Screen {
public:
    virtual ~Screen() = default;
    virtual bool show(const TopSample& now, const TopRates& rates) = 0;
    // False when the user has ended the program, or the reader has gone.
    virtual bool wait(Duration span) = 0;
    // Readable when wait() is to be called at once; -1: never.
    virtual int interrupt_fd() const = 0;
};

class Stream final : public Screen {
public:
    explicit Stream(Output output) : output_(output) {}
    bool show(const TopSample& now, const TopRates& rates) override {
        if (output_ == Output::kQuiet) return true;
        return print(output_ == Output::kJson ? top_json(rates) : top_page(now, rates));
    }
    // Ends at once when the reader of a pipe has gone.
    bool wait(Duration span) override {
        const timespec time = timespec_of(span);
        pollfd reader{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
        return ppoll(&reader, 1, &time, nullptr) == 0 || (reader.revents & POLLERR) == 0;
    }
    int interrupt_fd() const override { return -1; }

private:
    const Output output_;
};

// The alternate screen, with the keys if standard input is a terminal. The signals that end or stop
// a program are taken in wait(), so that the terminal is always given back first.
class Terminal final : public Screen {
public:
    Terminal()
        : taken_(without_ignored({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH})),
          epoll_fd_(epoll_create1(EPOLL_CLOEXEC)) {
        sigprocmask(SIG_BLOCK, &taken_, &before_);
        signal_fd_ = signalfd(-1, &taken_, SFD_CLOEXEC | SFD_NONBLOCK);
        watch(signal_fd_);
        has_keys_ = tcgetattr(STDIN_FILENO, &usual_) == 0;
        if (has_keys_) watch(STDIN_FILENO);
        enter();
        draw();
    }
    ~Terminal() override {
        leave();
        for (const int fd : {signal_fd_, epoll_fd_}) {
            if (fd >= 0) close(fd);
        }
        sigprocmask(SIG_SETMASK, &before_, nullptr);
        if (ended_by_ != 0) {
            // Ends by the same signal, so that the parent process sees it.
            std::signal(ended_by_, SIG_DFL);
            std::raise(ended_by_);
        }
    }
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    bool show(const TopSample& now, const TopRates& rates) override {
        screen_.set(now, rates);
        return draw();
    }
    bool wait(Duration span) override {
        const Instant end = after(clock_.now(), span);
        do {
            const timespec time = timespec_of(end - clock_.now());
            pollfd ready{.fd = epoll_fd_, .events = POLLIN, .revents = 0};
            const int count = ppoll(&ready, 1, &time, nullptr);
            if (count > 0 && !take_signals()) return false;
            if (count > 0 && !take_keys()) return false;
        } while (clock_.now() < end);
        return true;
    }
    int interrupt_fd() const override { return epoll_fd_; }

private:
    // Without the wrapping of long lines.
    static constexpr const char* kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
    static constexpr const char* kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";

    void watch(int fd) const {
        epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
        epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
    }
    void enter() {
        if (has_keys_) {
            // Keys come one by one and are not echoed.
            termios keys = usual_;
            keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
            keys.c_cc[VMIN] = 0;
            keys.c_cc[VTIME] = 0;
            tcsetattr(STDIN_FILENO, TCSANOW, &keys);
        }
        print(kEnter);
    }
    // Keys that were typed and not read are dropped: they were not meant for the shell.
    void leave() {
        if (has_keys_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &usual_);
        print(kLeave);
    }

    bool draw() const {
        winsize size{};
        const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
        const std::size_t columns = is_known && size.ws_col > 0 ? size.ws_col : 80;
        const std::size_t rows = is_known && size.ws_row > 0 ? size.ws_row : 24;
        std::string frame = "\x1b[H";
        bool is_first = true;
        for (const std::string& line : screen_.frame(columns, rows)) {
            frame += (std::exchange(is_first, false) ? "" : "\r\n") + line + "\x1b[K";
        }
        return print(frame + "\x1b[J");
    }

    bool take_signals() {
        signalfd_siginfo signal{};
        while (read(signal_fd_, &signal, sizeof signal) == sizeof signal) {
            const auto number = static_cast<int>(signal.ssi_signo);
            if (number == SIGTSTP) {
                leave();
                std::raise(SIGSTOP);
                enter();
            } else if (number != SIGWINCH) {
                ended_by_ = number;
                return false;
            }
            if (!draw()) return false;
        }
        return true;
    }
    bool take_keys() {
        if (!has_keys_) return true;
        pollfd typed{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
        if (poll(&typed, 1, 0) <= 0) return true;
        std::array<char, 64> keys{};
        const ssize_t count = read(STDIN_FILENO, keys.data(), keys.size());
        if (count <= 0) return false;  // The terminal has gone.
        for (ssize_t i = 0; i < count; ++i) {
            if (!screen_.on_key(keys[static_cast<std::size_t>(i)])) return false;
        }
        return draw();
    }

    const core::PosixClock clock_;
    TopScreen screen_;
    const sigset_t taken_;
    sigset_t before_{};
    termios usual_{};
    bool has_keys_ = false;
    const int epoll_fd_;
    int signal_fd_ = -1;
    int ended_by_ = 0;
};

using Answer = std::expected<HttpAnswer, AdminProblem>;

// Gets an answer. None: the user has ended the program. Signals and keys are handled while waiting.
std::optional<Answer> ask(const Call& call, Screen& screen, const char* path) {
    for (;;) {
        auto answer = call.client.get(path, screen.interrupt_fd());
        if (answer || answer.error().kind != AdminFailure::kInterrupted) return answer;
        if (!screen.wait(Duration::zero())) return std::nullopt;
    }
}

// The localities answer for the classes: while one is stuck, classes are not asked for.
bool may_have_classes(const json& status) {
    return std::ranges::none_of(status.at("localities"),
                                [](const json& at) { return at.at("state") == "stuck"; });
}

// Why the figures end. None: the user has ended them. Otherwise the answer, which has no figures.
using LastAnswer = std::optional<Answer>;

std::expected<TopSample, LastAnswer> look(const Call& call, Screen& screen) {
    auto answer = ask(call, screen, "/v1/status");
    if (!answer || !*answer || (*answer)->status != 200) return std::unexpected(std::move(answer));
    const json status = json::parse((*answer)->body);
    TopSample sample = sample_of(status);
    if (!may_have_classes(status)) return sample;
    // There are no such figures while the node starts or stops, and some not in older daemons.
    using Add = void (*)(TopSample&, const json&);
    for (const auto& [path, add] : {std::pair<const char*, Add>("/v1/lrs", &add_classes),
                                    std::pair<const char*, Add>("/v1/load", &add_load)}) {
        const auto more = ask(call, screen, path);
        if (!more) return std::unexpected(std::nullopt);
        if (*more && (*more)->status == 200) add(sample, json::parse((*more)->body));
    }
    return sample;
}

// Returns the exit code, or the answer that is to be complained about: the screen must be gone by
// then.
std::expected<int, Answer> show_rates(const Call& call, Screen& screen) {
    const auto end_of = [](LastAnswer ended) -> std::expected<int, Answer> {
        if (!ended) return kExitDone;
        return std::unexpected(*std::move(ended));
    };
    auto first = look(call, screen);
    if (!first) return end_of(std::move(first.error()));
    TopSample before = *std::move(first);
    std::uint64_t shown_count = 0;
    while (screen.wait(from_seconds(call.arguments.interval_s))) {
        auto next = look(call, screen);
        if (!next) return end_of(std::move(next.error()));
        TopSample now = *std::move(next);
        if (are_comparable(before, now)) {
            if (!screen.show(now, rates_between(before, now))) return kExitRefused;
            if (++shown_count == call.arguments.count) return kExitDone;
        }
        before = std::move(now);
    }
    return kExitDone;
}

}  // namespace

void declare_top(CLI::App& app, VerbArguments& arguments) {
    declare_repetition(app, arguments, "Seconds between two measurements", 0.01);
}

int run_top(const Call& call) {
    std::expected<int, Answer> ended = kExitDone;
    if (call.output == Output::kPage && isatty(STDOUT_FILENO) == 1) {
        Terminal terminal;
        ended = show_rates(call, terminal);
    } else {
        Stream stream(call.output);
        ended = show_rates(call, stream);
    }
    if (ended) return *ended;
    const auto body = checked(call, ended.error());
    return body ? kExitDone : body.error();
}

}  // namespace fopd::client

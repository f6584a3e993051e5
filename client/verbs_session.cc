// SPDX-License-Identifier: BSD-2-Clause
#include <array>
#include <cerrno>
#include <cstdio>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "client/command_line.h"
#include "client/exit_code.h"
#include "client/interrupts.h"
#include "client/object_run.h"
#include "client/replaced_file.h"
#include "client/shell_words.h"
#include "client/verb.h"
#include "core/owned_fd.h"

namespace fopd::client {

namespace {

// Reads lines, and keeps the session alive meanwhile.
class LineReader {
public:
    LineReader(int fd, SharedSession& shared) : fd_(fd), shared_(shared) {}

    enum class End : std::uint8_t {
        kFile,
        kInterrupt,
        kFault,    // With errno.
        kTooLong,  // Of a line.
    };
    // Without the newline, which may be missing at the end of the file.
    std::expected<std::string, End> next(Interrupts::Usual usual) {
        for (;;) {
            const std::size_t newline = text_.find('\n', looked_);
            if (newline != text_.npos) {
                std::string line = text_.substr(begin_, newline - begin_);
                looked_ = begin_ = newline + 1;
                return line;
            }
            looked_ = text_.size();
            if (is_end_ && begin_ < text_.size()) {
                return text_.substr(std::exchange(begin_, text_.size()));
            }
            if (is_end_) return std::unexpected(End::kFile);
            if (text_.size() - begin_ > kLineMax) return std::unexpected(End::kTooLong);
            if (const auto read = read_more(usual); !read) return std::unexpected(read.error());
        }
    }
    // Drops the part of a line that has been typed.
    void drop() {
        text_.clear();
        begin_ = looked_ = 0;
    }

private:
    static constexpr std::size_t kLineMax = std::size_t{1} << 20;

    std::expected<void, End> read_more(Interrupts::Usual usual) {
        text_.erase(0, begin_);
        looked_ -= begin_;
        begin_ = 0;
        {
            Interrupts interrupts(usual);
            if (!shared_.wait(fd_, interrupts)) return std::unexpected(End::kInterrupt);
        }
        std::array<char, 65536> bytes;
        const ssize_t size = ::read(fd_, bytes.data(), bytes.size());
        if (size < 0 && (errno == EINTR || errno == EAGAIN)) return {};
        if (size < 0) return std::unexpected(End::kFault);
        is_end_ = size == 0;
        text_.append(bytes.data(), static_cast<std::size_t>(size));
        return {};
    }

    const int fd_;
    SharedSession& shared_;
    std::string text_;
    std::size_t begin_ = 0;   // Of the next line.
    std::size_t looked_ = 0;  // There is no newline before it.
    bool is_end_ = false;
};

// Verbs that read standard input must not take the lines that are read from it.
std::expected<core::OwnedFd, int> take_standard_input() {
    core::OwnedFd lines(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    const core::OwnedFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (lines.get() < 0 || nothing.get() < 0 || ::dup2(nothing.get(), STDIN_FILENO) < 0) {
        return std::unexpected(errno);
    }
    return lines;
}

// Translates a line typed in the shell into the words of a command line. None: the line ends the
// shell.
std::optional<std::vector<std::string>> meant(std::vector<std::string> words) {
    if (words.front() == "exit" || words.front() == "quit") return std::nullopt;
    return with_help_option(std::move(words));
}

// Runs the lines of a file. Returns the exit code of the first that failed.
class Batch {
public:
    enum class Kind : std::uint8_t {
        kUntilFailure,
        kGoesOn,
        kShell,  // Goes on, and knows the words of a shell.
    };
    Batch(const Call& call, std::string name, Kind kind)
        : call_(call),
          name_(std::move(name)),
          kind_(kind),
          lines_(call.open_lines({.shared = &shared_})) {}

    int run(int fd) {
        LineReader reader(fd, shared_);
        std::uint64_t number = 0;
        while (!is_over_ && (exit_code_ == kExitDone || kind_ != Kind::kUntilFailure)) {
            const auto line = reader.next(Interrupts::Usual::kNothing);
            complain_about_line(++number);
            if (!line) {
                complain_about_line(0);
                end(line.error());
                break;
            }
            const int exit_code = end_complaints(run_line(*line));
            if (exit_code == kExitNotAllowed) shared_.close();
            complain_as(call_.output == Output::kJson ? Complaints::kJson : Complaints::kLines);
            if (exit_code_ == kExitDone) exit_code_ = exit_code;
        }
        complain_about_line(0);
        return exit_code_;
    }

private:
    int run_line(const std::string& line) {
        auto words = shell_words(line);
        if (!words) return complain_about(call_, words.error(), kExitUsage);
        if (words->empty()) return kExitDone;
        if (kind_ != Kind::kShell) return lines_->run(std::move(*words));
        auto other = meant(std::move(*words));
        is_over_ = !other;
        return is_over_ ? kExitDone : lines_->run(std::move(*other));
    }
    void end(LineReader::End end) {
        using End = LineReader::End;
        int exit_code = kExitDone;
        if (end == End::kFault) {
            exit_code = complain_about(call_, file_words(name_, errno), kExitRefused);
        } else if (end == End::kTooLong) {
            exit_code = complain_about(call_, name_ + ": a line is longer than 1 MiB", kExitUsage);
        }
        if (exit_code_ == kExitDone) exit_code_ = exit_code;
    }

    const Call& call_;
    const std::string name_;
    const Kind kind_;
    SharedSession shared_;
    std::unique_ptr<CommandLines> lines_;
    int exit_code_ = kExitDone;
    bool is_over_ = false;
};

int refuse_nested(const Call& call) {
    return complain_about(call, "it cannot be a line of batch or shell", kExitUsage);
}

int run_batch_from_input(const Call& call, Batch::Kind kind) {
    const auto lines = take_standard_input();
    if (!lines) {
        return complain_about(call, file_words("standard input", lines.error()), kExitRefused);
    }
    return Batch(call, "standard input", kind).run(lines->get());
}

int run_batch(const Call& call) {
    if (!call.open_lines) return refuse_nested(call);
    const auto kind = call.arguments.keep_going ? Batch::Kind::kGoesOn : Batch::Kind::kUntilFailure;
    const std::string& file = call.arguments.file;
    if (file.empty() || file == "-") return run_batch_from_input(call, kind);
    const core::OwnedFd lines(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (lines.get() < 0) return complain_about(call, file_words(file, errno), kExitUsage);
    return Batch(call, file, kind).run(lines.get());
}

void declare_batch(CLI::App& app, VerbArguments& arguments) {
    app.add_option("file", arguments.file,
                   "The file with the lines; without it, or with -, standard input");
    app.add_flag("--keep-going", arguments.keep_going, "Go on after a line that fails");
}

// -- typed lines --

constexpr const char* kPrompt = "fopctl> ";

int run_shell(const Call& call) {
    if (!call.open_lines) return refuse_nested(call);
    if (::isatty(STDIN_FILENO) != 1) {
        return run_batch_from_input(call, Batch::Kind::kShell);
    }
    SharedSession shared;
    const auto lines = call.open_lines({.shared = &shared, .is_typed = true});
    LineReader reader(STDIN_FILENO, shared);
    for (;;) {
        std::fputs(kPrompt, stderr);
        std::fflush(stderr);
        const auto line = reader.next(Interrupts::Usual::kInterrupt);
        if (!line && line.error() == LineReader::End::kInterrupt) {
            reader.drop();
            std::fputs("\n", stderr);
            continue;
        }
        if (!line) break;
        auto words = shell_words(*line);
        if (!words) {
            complain(words.error());
        } else if (!words->empty()) {
            auto other = meant(std::move(*words));
            if (!other) return kExitDone;
            if (lines->run(std::move(*other)) == kExitNotAllowed) shared.close();
        }
        end_complaints(kExitDone);
    }
    std::fputs("\n", stderr);
    return kExitDone;
}

constexpr std::array kSessionVerbs{
    Verb{"batch", "Run verbs, one in each line of a file", "batch lines\nbatch --keep-going lines",
         kTimeoutDefault, declare_batch, run_batch},
    Verb{"shell", "Run verbs as you type them, until exit", "shell", kTimeoutDefault, nullptr,
         run_shell},
};

}  // namespace

std::span<const Verb> session_verbs() {
    return kSessionVerbs;
}

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#include "client/progress_line.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <unistd.h>

#include "client/table.h"

namespace fopd::client {

namespace {

constexpr Duration kLong = 1s;
constexpr Duration kPause = 200ms;
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(core::Reactor& reactor, const Transfer& transfer, Options options)
    : ProgressLine(
          reactor, [&transfer] { return Moved{.bytes = transfer.moved_bytes()}; },
          std::move(options)) {}

ProgressLine::ProgressLine(core::Reactor& reactor, Look look, Options options)
    : reactor_(reactor), look_(std::move(look)), options_(std::move(options)) {
    if (options_.wanted && ::isatty(STDERR_FILENO) == 1) reactor_.spawn(gate_, show());
}

Task<void> ProgressLine::close() {
    ended_.cancel();
    co_await gate_.close(reactor_);
}

Task<void> ProgressLine::show() {
    const Instant begun = reactor_.now();
    for (Duration pause = kLong;; pause = kPause) {
        const auto slept = co_await reactor_.sleep_for(pause, &ended_);
        if (!slept) break;
        const std::string text = line(reactor_.now() - begun);
        std::fprintf(stderr, "%s%s", kClearLine, text.c_str());
        std::fflush(stderr);
        is_shown_ = true;
    }
    clear();
}

void ProgressLine::clear() {
    if (std::exchange(is_shown_, false)) std::fputs(kClearLine, stderr);
}

// Empty: nothing waits for tape.
std::string ProgressLine::tape_line() const {
    if (options_.tape == nullptr || options_.tape->calls == 0) return {};
    std::string text = "waits for tape";
    // Without the advice behind it, for which the line has no room.
    const std::string& reason = options_.tape->reason;
    if (!reason.empty()) return text + ": " + reason.substr(0, reason.find(';'));
    if (options_.tape->place) text += ", " + std::to_string(*options_.tape->place) + " before it";
    if (options_.tape->expected_at) {
        const Duration left = *options_.tape->expected_at - reactor_.now();
        const double seconds = std::chrono::duration<double>(left).count();
        text += ", expected in " + span_of(std::max(seconds, 0.0));
    }
    return text;
}

std::string ProgressLine::line(Duration span) const {
    const std::string waiting = tape_line();
    if (!waiting.empty()) return options_.label + "  " + waiting;
    const Moved now = look_();
    if (!options_.moves_bytes) {
        const double waited = std::chrono::duration<double>(span).count();
        std::string text = options_.label + "  ";
        if (now.objects) text += std::to_string(*now.objects) + " objects  ";
        return text + span_of(waited);
    }
    const auto moved = static_cast<double>(now.bytes);
    const double seconds = std::chrono::duration<double>(span).count();
    const double rate = moved / seconds;
    std::string text = options_.label + "  ";
    if (now.objects) text += std::to_string(*now.objects) + " objects  ";
    text += size_of(now.bytes);
    const auto total = static_cast<double>(options_.total_bytes);
    if (total > 0) {
        text += " of " + size_of(options_.total_bytes) + "  " +
                fixed(std::min(moved / total, 1.0) * 100, 0) + "%";
    }
    text += "  " + size_of(static_cast<std::uint64_t>(rate)) + "/s";
    if (total > 0 && rate > 0 && total >= moved) text += "  " + span_of((total - moved) / rate);
    return text;
}

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "client/http_answer.h"
#include "core/time.h"

namespace fopd::client {

enum class AdminFailure : std::uint8_t {
    kNoServer,
    kEnded,  // The server accepted the connection, and closed it without an answer.
    kBadAnswer,
    kDenied,
    kTimedOut,
    kInterrupted,
};

struct AdminProblem {
    AdminFailure kind;
    std::string message;  // One line, safe for a terminal, that says what to do.
};

// Escapes text for the value of a parameter in a URL.
std::string in_url(std::string_view text);

// Sends requests to a fopd through its admin socket, one at a time, each on its own connection.
class AdminClient {
public:
    // A longer answer is refused: fopd sends none.
    static constexpr std::size_t kAnswerMax = 16UL << 20;

    // `timeout` is for each request; 0: no limit.
    AdminClient(std::string socket_path, Duration timeout);

    // A request ends as kInterrupted when `interrupt_fd` becomes readable; -1: it cannot be
    // interrupted.
    std::expected<HttpAnswer, AdminProblem> get(const std::string& target,
                                                int interrupt_fd = -1) const;
    std::expected<HttpAnswer, AdminProblem> post(const std::string& target,
                                                 const std::string& body = {}) const;

    // A client of the same socket, with another time limit.
    AdminClient with_timeout(Duration timeout) const { return {socket_path_, timeout}; }
    // The path, safe for a terminal.
    const std::string& name() const { return name_; }

private:
    enum class Method { kGet, kPost };
    std::expected<HttpAnswer, AdminProblem> ask(Method method, const std::string& target,
                                                int interrupt_fd, const std::string& body) const;
    AdminProblem problem_of(AdminFailure kind, std::string_view why) const;

    const std::string socket_path_;
    const std::string name_;
    const Duration timeout_;
};

}  // namespace fopd::client

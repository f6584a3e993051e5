// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "core/time.h"

namespace fopd::client {

struct AdminAnswer {
    int status = 0;
    std::string body;
};

enum class AdminFailure : std::uint8_t { kNoServer, kDenied, kTimedOut, kInterrupted };

struct AdminProblem {
    AdminFailure kind;
    std::string message;  // One line, safe for a terminal, that says what to do.
};

// Text as it stands behind a "=" in a URL.
std::string in_url(std::string_view text);

// Asks a fopd through its admin socket. One request at a time, each on a connection of its own.
class AdminClient {
public:
    // An answer beyond this is none of fopd's.
    static constexpr std::size_t kAnswerMax = 16UL << 20;

    // `timeout` is for each request; 0 waits as long as it takes.
    AdminClient(std::string socket_path, Duration timeout);

    // Once `interrupt_fd`, if there is one, can be read from, the request is given up.
    std::expected<AdminAnswer, AdminProblem> get(const std::string& target,
                                                 int interrupt_fd = -1) const;
    std::expected<AdminAnswer, AdminProblem> post(const std::string& target,
                                                  const std::string& body = {}) const;

    // The path, safe for a terminal.
    const std::string& name() const { return name_; }

private:
    enum class Method { kGet, kPost };
    std::expected<AdminAnswer, AdminProblem> ask(Method method, const std::string& target,
                                                 int interrupt_fd, const std::string& body) const;

    const std::string socket_path_;
    const std::string name_;
    const Duration timeout_;
};

}  // namespace fopd::client

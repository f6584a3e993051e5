// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace fopd::client {

struct HttpAnswer {
    int status = 0;
    std::string body;
};

// Parses all that a server of HTTP/1.1 said before it ended the connection. The body ends with the
// connection, or has the announced length. The error is the reason for people.
std::expected<HttpAnswer, const char*> parse_http_answer(std::string_view bytes);

}  // namespace fopd::client

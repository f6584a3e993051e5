// Goal: fopctl parses the answers of the admin socket, or says why it cannot.

#include "client/http_answer.h"

#include <string>

#include "tests/catch.h"

namespace fopd::client {

TEST_CASE("http answer: status and body", "[client]") {
    const auto [bytes, status, body] =
        GENERATE(Catch::Generators::table<std::string, int, std::string>(
            {{"HTTP/1.1 200 OK\r\nContent-Type: text\r\n\r\n{}", 200, "{}"},
             {"HTTP/1.0 404 Not Found\r\n\r\n", 404, ""},
             {"HTTP/1.1 200\r\ncontent-LENGTH:\t2 \r\n\r\nab", 200, "ab"},
             {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 1\r\n\r\nab", 503, "a"},
             {"HTTP/1.1 200 OK\r\n\r\na\r\n\r\nb", 200, "a\r\n\r\nb"}}));
    CAPTURE(bytes);

    const auto answer = parse_http_answer(bytes);

    REQUIRE(answer.has_value());
    REQUIRE(answer->status == status);
    REQUIRE(answer->body == body);
}

TEST_CASE("http answer: a parse error has the reason", "[client]") {
    const auto [bytes, why] = GENERATE(Catch::Generators::table<std::string, std::string>(
        {{"", "it is empty"},
         {"garbage\r\n\r\n", "it is not HTTP/1.1"},
         {"HTTP/1.1 2x0 OK\r\n\r\n", "it is not HTTP/1.1"},
         {"HTTP/1.1", "it is not HTTP/1.1"},
         {"HTTP/1.1 \r\n\r\n", "it is not HTTP/1.1"},
         {"HTTP/1.1 200 OK\r\nno header\r\n\r\n", "it is not HTTP/1.1"},
         {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "it is not HTTP/1.1"},
         {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "it is not HTTP/1.1"},
         {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "incomplete"},
         {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", "incomplete"},
         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "encoded"}}));
    CAPTURE(bytes);

    const auto answer = parse_http_answer(bytes);

    REQUIRE_FALSE(answer.has_value());
    REQUIRE_THAT(answer.error(), ContainsSubstring(why));
}

}  // namespace fopd::client

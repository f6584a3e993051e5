// SPDX-License-Identifier: BSD-2-Clause
#include "client/http_answer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/whole_number.h"

namespace fopd::client {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr const char* kForeign = "it is not HTTP/1.1";
constexpr const char* kIncomplete = "it is incomplete";

// Cuts the next line off.
std::optional<std::string_view> take_line(std::string_view& rest) {
    const std::size_t end = rest.find(kLineEnd);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + kLineEnd.size());
    return line;
}

// "HTTP/1.1 200 OK"
std::optional<unsigned> status_in(std::string_view line) {
    constexpr std::string_view kVersion = "HTTP/1.";
    constexpr std::size_t kStatusAt = kVersion.size() + 2;
    constexpr std::size_t kDigits = 3;
    if (!line.starts_with(kVersion) || line.size() < kStatusAt + kDigits) return std::nullopt;
    if (line[kStatusAt - 1] != ' ') return std::nullopt;
    return core::whole_number<unsigned>(line.substr(kStatusAt, kDigits));
}

bool is_same_name(std::string_view one, std::string_view other) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::ranges::equal(one, other, {}, lower, lower);
}

std::string_view without_spaces(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

std::expected<HttpAnswer, const char*> parse_http_answer(std::string_view bytes) {
    if (bytes.empty()) return std::unexpected("it is empty");
    const auto first = take_line(bytes);
    const auto status = first ? status_in(*first) : std::nullopt;
    if (!status) return std::unexpected(kForeign);
    std::optional<std::uint64_t> announced;
    for (;;) {
        const auto line = take_line(bytes);
        if (!line) return std::unexpected(kIncomplete);
        if (line->empty()) break;
        const std::size_t colon = line->find(':');
        if (colon == std::string_view::npos) return std::unexpected(kForeign);
        const std::string_view name = line->substr(0, colon);
        if (is_same_name(name, "transfer-encoding")) {
            return std::unexpected("it is encoded in a way that fopd does not use");
        }
        if (!is_same_name(name, "content-length")) continue;
        announced = core::whole_number(without_spaces(line->substr(colon + 1)));
        if (!announced) return std::unexpected(kForeign);
    }
    if (announced && bytes.size() < *announced) return std::unexpected(kIncomplete);
    if (announced) bytes = bytes.substr(0, *announced);
    return HttpAnswer{.status = static_cast<int>(*status), .body = std::string(bytes)};
}

}  // namespace fopd::client

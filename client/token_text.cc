// SPDX-License-Identifier: BSD-2-Clause
#include "client/token_text.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "client/secret_file.h"
#include "fop/token.h"

namespace fopd::client {

namespace {

// More than a token in text and the white space around it.
constexpr std::size_t kTokenFileMax = 1024;
// Less than any token in text, and more than a usual file's name.
constexpr std::size_t kTokenTextMin = 128;

std::expected<std::vector<std::byte>, std::string> parse_token(std::string_view text) {
    auto bytes = fop::parse_token_text(text);
    if (!bytes) return std::unexpected(bytes.error().context);
    const auto token = fop::read_unverified(*bytes);
    if (!token) return std::unexpected(token.error().context);
    return std::move(*bytes);
}

bool may_be_token(std::string_view text) {
    return text.size() >= kTokenTextMin && !text.contains('/');
}

}  // namespace

std::expected<std::vector<std::byte>, std::string> read_token(const std::string& token_or_file) {
    if (auto token = parse_token(token_or_file)) return token;
    std::array<char, kTokenFileMax> text{};
    const auto length = read_secret_file(token_or_file, text, Guard::kNone);
    if (!length && may_be_token(token_or_file)) {
        return std::unexpected("it is neither a token nor a file that can be read");
    }
    if (!length) return std::unexpected(length.error());
    auto token = parse_token(std::string_view(text.data(), *length));
    if (!token) return std::unexpected(token_or_file + ": " + token.error());
    return token;
}

}  // namespace fopd::client

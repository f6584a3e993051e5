// SPDX-License-Identifier: BSD-2-Clause
#include "client/shell_words.h"

#include <optional>
#include <utility>

namespace fopd::client {

namespace {

constexpr std::string_view kBlanks = " \t\r";

}  // namespace

std::expected<std::vector<std::string>, std::string> shell_words(std::string_view line) {
    std::vector<std::string> words;
    std::optional<std::string> word;  // None: between words.
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char each = line[i];
        const bool is_last = i + 1 == line.size();
        if (quote != 0 && each == quote) {
            quote = 0;
        } else if (each == '\\' && quote == 0 && is_last) {
            return std::unexpected("a backslash stands before the end of the line");
        } else if (each == '\\' && quote == 0) {
            word.emplace(word.value_or("") + line[++i]);
        } else if (each == '\\' && quote == '"' && !is_last &&
                   (line[i + 1] == '"' || line[i + 1] == '\\')) {
            *word += line[++i];
        } else if (quote != 0) {
            *word += each;
        } else if (each == '\'' || each == '"') {
            quote = each;
            if (!word) word.emplace();
        } else if (kBlanks.find(each) != kBlanks.npos) {
            if (word) words.push_back(std::move(*std::exchange(word, std::nullopt)));
        } else if (each == '#' && !word) {
            break;
        } else {
            if (!word) word.emplace();
            *word += each;
        }
    }
    if (quote != 0) return std::unexpected(std::string("there is no closing ") + quote);
    if (word) words.push_back(std::move(*word));
    return words;
}

}  // namespace fopd::client

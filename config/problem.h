#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::config {

// A position in a file. Lines and columns count from 1; columns count characters, not bytes.
struct Position {
    std::uint32_t line = 1;
    std::uint32_t column = 1;
};

// A mistake in a configuration, and how to correct it.
struct Problem {
    std::string file;
    Position position;
    std::string key;    // The path, "pools[2].quota"; "yaml": the syntax; "file": the whole file.
    std::string wrong;  // The mistake, in words.
    std::string right;  // How to correct it.
};

using Problems = std::vector<Problem>;

// A mistake in one value, before its position is known.
struct Mistake {
    std::string wrong;
    std::string right;
    // Used by checks that compare settings: the path of the wrong value in its section. Empty: the
    // position of the mistake is the section itself.
    std::string key = {};
};

// "FILE:LINE:COL: key: what is wrong, how to correct it".
std::string to_string(const Problem& problem);

// `text` in double quotes, safe for a terminal and a log: control characters and invalid UTF-8 are
// escaped, long text is truncated.
std::string in_quotes(std::string_view text);

// A key as shown in a path: unchanged if it is a short word, otherwise quoted.
std::string shown_key(std::string_view key);

// "a, b, c".
std::string joined(const std::vector<std::string>& words);

}  // namespace fopd::config

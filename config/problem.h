#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::config {

// Where something stands in a file. Both count from 1; a column is a character, not a byte.
struct Position {
    std::uint32_t line = 1;
    std::uint32_t column = 1;
};

// One thing that is wrong with a configuration, and how to put it right.
struct Problem {
    std::string file;
    Position position;
    std::string key;  // The path, "pools[2].quota"; "yaml" for the notation, "file" for the whole.
    std::string wrong;  // What is wrong.
    std::string right;  // What would be right.
};

using Problems = std::vector<Problem>;

// What is wrong with one value, before anybody knows where it stands.
struct Mistake {
    std::string wrong;
    std::string right;
};

// "FILE:LINE:COL: key: what is wrong, what would be right".
std::string to_string(const Problem& problem);

// `text` in double quotes, fit for a terminal and a log: control characters and broken UTF-8 are
// escaped, long text is cut.
std::string in_quotes(std::string_view text);

// A key as it is shown in a path: as it is when it is a short word, else quoted.
std::string shown_key(std::string_view key);

// "a, b, c".
std::string joined(const std::vector<std::string>& words);

}  // namespace fopd::config

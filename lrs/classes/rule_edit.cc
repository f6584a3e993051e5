#include "lrs/classes/rule_edit.h"

#include <algorithm>

namespace fopd::lrs {

namespace {

// Some editors write it at the start of UTF-8 files.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

std::vector<RuleLine> rule_lines(std::string_view text) {
    std::vector<RuleLine> lines;
    std::size_t number = 0;
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    while (!text.empty()) {
        ++number;
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        const std::size_t start = line.find_first_not_of(" \t");
        if (start == std::string_view::npos || line[start] == '#') continue;
        lines.push_back({.number = number, .text = line});
    }
    return lines;
}

}  // namespace fopd::lrs

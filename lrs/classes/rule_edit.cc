#include "lrs/classes/rule_edit.h"

#include <algorithm>

namespace fopd::lrs {

std::vector<RuleLine> rule_lines(std::string_view text) {
    std::vector<RuleLine> lines;
    std::size_t number = 0;
    while (!text.empty()) {
        ++number;
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t start = line.find_first_not_of(' ');
        if (start == std::string_view::npos || line[start] == '#') continue;
        lines.push_back({.number = number, .text = line});
    }
    return lines;
}

}  // namespace fopd::lrs

#include "config/section_text.h"

#include <cstddef>
#include <vector>

#include "config/yaml_reader.h"

namespace fopd::config {

namespace {

constexpr std::string_view kNotByLines =
    "its sections do not each begin a line of their own; write them below each other, without "
    "braces around all";

// Includes the line ends.
std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
        lines.push_back(text.substr(0, size));
        text.remove_prefix(size);
    }
    return lines;
}

bool is_between(std::string_view line) {
    return line.starts_with('#') || line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

std::expected<std::string, std::string> replace_section(std::string_view text,
                                                        std::string_view name,
                                                        std::string_view lines) {
    Problems problems;
    const auto root = read_yaml(text, problems);
    if (!root || !problems.empty()) return std::unexpected("it cannot be read any more");
    const std::vector<std::string_view> before = lines_of(text);
    std::size_t first = before.size();  // The first of the lines to be replaced.
    std::size_t end = before.size();
    std::size_t last_line = 0;
    bool is_found = false;
    for (const NodeEntry& entry : root->entries) {
        const Position& at = entry.key_position;
        const bool begins_line = at.column == 1 && at.line > last_line && at.line <= before.size();
        if (!begins_line) return std::unexpected(std::string(kNotByLines));
        last_line = at.line;
        if (is_found && end == before.size()) end = at.line - 1;
        if (entry.key != name) continue;
        first = at.line - 1;
        is_found = true;
    }
    while (is_found && end > first + 1 && is_between(before[end - 1])) --end;

    std::string changed;
    for (std::size_t i = 0; i < first; ++i) changed += before[i];
    if (!changed.empty() && !changed.ends_with('\n')) changed += '\n';
    if (!is_found && !changed.empty()) changed += '\n';
    changed += lines;
    for (std::size_t i = end; i < before.size(); ++i) changed += before[i];
    return changed;
}

}  // namespace fopd::config

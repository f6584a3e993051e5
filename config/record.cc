#include "config/record.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "config/nearest.h"

namespace fopd::config {
namespace {

void report_unknown(const NodeEntry& entry, const std::string& path,
                    const std::vector<std::string>& known, Problems& problems) {
    const std::string here = key_path(path, shown_key(entry.key));
    Problem problem{"", entry.key_position, here, "unknown key", ""};
    const auto meant = nearest(entry.key, known);
    if (entry.key == "<<") {
        problem.wrong = "a merge key";
        problem.right = "write the keys out where they are needed";
    } else if (meant) {
        problem.right = "did you mean " + in_quotes(*meant) + "?";
    } else {
        problem.right = known.empty() ? "no key is known here" : "known here: " + joined(known);
    }
    problems.push_back(std::move(problem));
}

}  // namespace

void Complaints::add(std::string_view key, std::string wrong, std::string right) {
    problems_.push_back(
        {"", locate(map_, key), key_path(path_, key), std::move(wrong), std::move(right)});
}

void ensure_key(std::string_view key, const std::vector<std::string>& taken) {
    ENSURE(!key.empty());
    ENSURE(key[0] >= 'a' && key[0] <= 'z');
    ENSURE(key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") ==
           std::string_view::npos);
    // Words that YAML readers do not read as text.
    constexpr std::string_view kNotText[] = {"null", "true", "false", "yes", "no", "on", "off"};
    ENSURE(std::ranges::find(kNotText, key) == std::end(kNotText));
    ENSURE(std::ranges::find(taken, key) == taken.end());
}

std::string key_path(const std::string& path, std::string_view key) {
    std::string text = path;
    if (!text.empty()) text += '.';
    return text.append(key);
}

void report_wrong_kind(const Node& node, const std::string& path, const std::string& allowed,
                       Problems& problems) {
    const char* wrong = "no value";
    switch (node.kind) {
        case Node::Kind::kRefused: return;
        case Node::Kind::kNull: break;
        case Node::Kind::kScalar: wrong = "a single value"; break;
        case Node::Kind::kList: wrong = "a list"; break;
        case Node::Kind::kMap: wrong = "a map"; break;
    }
    problems.push_back(
        {"", node.position, path.empty() ? "file" : path, wrong, "write " + allowed});
}

void report_missing(const Node& map, const std::string& path, const std::string& allowed,
                    Problems& problems) {
    problems.push_back({"", map.position, path, "missing", "write " + allowed});
}

std::optional<std::vector<const Node*>> match_keys(const Node& map, const std::string& path,
                                                   const std::vector<std::string>& known,
                                                   Problems& problems) {
    std::vector<const Node*> values(known.size(), nullptr);
    if (map.kind == Node::Kind::kNull) return values;
    if (map.kind != Node::Kind::kMap) {
        report_wrong_kind(map, path, "a map of " + joined(known), problems);
        return std::nullopt;
    }
    std::unordered_map<std::string_view, const NodeEntry*> seen;
    for (const NodeEntry& entry : map.entries) {
        const auto [first, is_new] = seen.try_emplace(entry.key, &entry);
        const auto index = std::ranges::find(known, entry.key) - known.begin();
        if (index == std::ssize(known)) {
            report_unknown(entry, path, known, problems);
        } else if (!is_new) {
            const std::string line = std::to_string(first->second->key_position.line);
            problems.push_back({"", entry.key_position, key_path(path, entry.key),
                                "given already in line " + line, "keep one of the two"});
        } else {
            values[static_cast<std::size_t>(index)] = &entry.value;
        }
    }
    return values;
}

}  // namespace fopd::config

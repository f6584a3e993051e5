#include "config/node.h"

#include <algorithm>

#include "core/ensure.h"
#include "core/utf8.h"

namespace fopd::config {
namespace {

// A double-quoted YAML scalar. Text from a file is UTF-8 with few control characters.
std::string yaml_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out += '"';
}

bool is_flat(const Node& list) {
    return std::ranges::all_of(list.items, [](const Node& item) {
        return item.kind != Node::Kind::kMap || item.entries.empty();
    });
}

void write_list(std::string& out, const Node& list, std::size_t indent);

// Writes the value after "key:" or "-": on the same line if it fits, otherwise on separate lines.
void write_value(std::string& out, const Node& value, std::size_t indent) {
    const bool is_block_map = value.kind == Node::Kind::kMap && !value.entries.empty();
    if (is_block_map) {
        out.append("\n").append(to_yaml(value, indent));
        return;
    }
    if (value.kind == Node::Kind::kList && !value.items.empty()) {
        const std::string line = to_line(value);
        if (!is_flat(value) || indent + line.size() > kColumnMax) {
            out += '\n';
            write_list(out, value, indent);
            return;
        }
    }
    out.append(" ").append(to_line(value)).append("\n");
}

void write_list(std::string& out, const Node& list, std::size_t indent) {
    for (const Node& item : list.items) {
        if (item.kind == Node::Kind::kMap && !item.entries.empty()) {
            // The first key is on the line of the dash.
            std::string text = to_yaml(item, indent + 2);
            text[indent] = '-';
            out += text;
        } else {
            out.append(indent, ' ').append("- ").append(to_line(item)).append("\n");
        }
    }
}

}  // namespace

Node plain_scalar(std::string text) {
    return Node{.kind = Node::Kind::kScalar,
                .position = {},
                .text = std::move(text),
                .items = {},
                .entries = {}};
}

Node quoted_scalar(std::string text) {
    Node node = plain_scalar(std::move(text));
    node.is_quoted = true;
    return node;
}

const Node* find(const Node& map, std::string_view key) {
    const auto entry = std::ranges::find(map.entries, key, &NodeEntry::key);
    return entry == map.entries.end() ? nullptr : &entry->value;
}

Position locate(const Node& node, std::string_view path) {
    const Node* here = &node;
    Position position = node.position;
    while (!path.empty()) {
        if (path[0] == '[') {
            std::size_t index = 0;
            std::size_t length = 1;
            for (; length < path.size() && path[length] != ']'; ++length) {
                index = index * 10 + static_cast<std::size_t>(path[length] - '0');
            }
            if (index >= here->items.size()) return position;
            here = &here->items[index];
            path.remove_prefix(std::min(path.size(), length + 1));
        } else {
            const std::size_t length = std::min(path.find_first_of(".["), path.size());
            here = find(*here, path.substr(0, length));
            if (here == nullptr) return position;
            path.remove_prefix(length);
        }
        if (path.starts_with('.')) path.remove_prefix(1);
        position = here->position;
    }
    return position;
}

std::string to_yaml(const Node& map, std::size_t indent) {
    ENSURE(map.kind == Node::Kind::kMap);
    std::string out;
    for (const NodeEntry& entry : map.entries) {
        out.append(indent, ' ').append(entry.key).append(":");
        write_value(out, entry.value, indent + 2);
    }
    return out;
}

std::string to_line(const Node& node) {
    std::string out;
    switch (node.kind) {
        case Node::Kind::kNull:
        case Node::Kind::kRefused: return "~";
        case Node::Kind::kScalar: return node.is_quoted ? yaml_quoted(node.text) : node.text;
        case Node::Kind::kList:
            for (const Node& item : node.items) {
                out.append(out.empty() ? "[" : ", ").append(to_line(item));
            }
            return out.empty() ? "[]" : out + "]";
        case Node::Kind::kMap:
            for (const NodeEntry& entry : node.entries) {
                out.append(out.empty() ? "{" : ", ").append(entry.key).append(": ");
                out.append(to_line(entry.value));
            }
            return out.empty() ? "{}" : out + "}";
    }
    return out;
}

}  // namespace fopd::config

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"

namespace fopd::config {

// A piece of a configuration file, or of one to be written: a small tree without aliases, tags or
// anything else YAML has and a configuration does not need. Positions mean nothing in a tree that
// was not read from a file.
struct NodeEntry;
struct Node {
    enum class Kind : std::uint8_t {
        kNull,     // "key:" with nothing behind it, or ~.
        kScalar,   // One word or text.
        kList,     //
        kMap,      //
        kRefused,  // Something already reported as wrong: say no more about it.
    };

    Kind kind = Kind::kNull;
    Position position;
    bool is_quoted = false;          // Of a scalar: in quotes or a block, so it is text for sure.
    std::string text;                // Of a scalar.
    std::vector<Node> items;         // Of a list.
    std::vector<NodeEntry> entries;  // Of a map, in the order of the file, doubles included.
};
struct NodeEntry {
    std::string key;
    Position key_position;
    Node value;
};

Node plain_scalar(std::string text);
Node quoted_scalar(std::string text);

// The value of the first entry `key` of a map, or null.
const Node* find(const Node& map, std::string_view key);

// The position of what `path` ("devices[2].pool") leads to from `node`; of the deepest step that
// exists if it does not.
Position locate(const Node& node, std::string_view path);

// YAML that reads back to the same tree. A map becomes one line for each key, after `indent`
// spaces.
std::string to_yaml(const Node& map, std::size_t indent = 0);

// The same on one line, for messages: {name: fast, cores: [1, 2]}.
std::string to_line(const Node& node);

// No line that is written is longer.
inline constexpr std::size_t kColumnMax = 100;

}  // namespace fopd::config

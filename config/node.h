#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"

namespace fopd::config {

// Part of a configuration file, read or to be written: a tree without aliases, tags or other YAML
// features that a configuration does not need. Positions are meaningful only in a tree that was
// read from a file.
struct NodeEntry;
struct Node {
    enum class Kind : std::uint8_t {
        kNull,     // "key:" without a value, or ~.
        kScalar,   // A word or text.
        kList,     //
        kMap,      //
        kRefused,  // Already reported as wrong; cause no further messages.
    };

    Kind kind = Kind::kNull;
    Position position;
    bool is_quoted = false;  // Whether a scalar is quoted or a block, so that it is certainly text.
    std::string text;        // The text of a scalar.
    std::vector<Node> items;  // The items of a list.
    // The entries of a map, in the order of the file, including duplicates.
    std::vector<NodeEntry> entries;
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

// The position of the node at `path` ("devices[2].pool"), starting from `node`; if it does not
// exist, of the deepest step that does.
Position locate(const Node& node, std::string_view path);

// YAML that parses to the same tree. Each key of a map starts a line, indented by `indent` spaces.
std::string to_yaml(const Node& map, std::size_t indent = 0);

// The node as YAML on one line, for messages: {name: fast, cores: [1, 2]}.
std::string to_line(const Node& node);

// Written lines are not longer.
inline constexpr std::size_t kColumnMax = 100;

}  // namespace fopd::config

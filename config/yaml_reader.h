#pragma once

#include <optional>
#include <string_view>

#include "config/node.h"
#include "config/problem.h"

namespace fopd::config {

// The only code that uses yaml-cpp; its exceptions do not get out.

// Reads one YAML document into a tree; nothing if it cannot be read at all. All mistakes are added
// to `problems`: a tree is returned even if parts of it are refused, so that the rest can be
// checked. An empty document is a null.
std::optional<Node> read_yaml(std::string_view text, Problems& problems);

}  // namespace fopd::config

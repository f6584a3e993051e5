#pragma once

#include <optional>
#include <string_view>

#include "config/node.h"
#include "config/problem.h"

namespace fopd::config {

// The only place that knows yaml-cpp; nothing it throws gets out.

// Reads one YAML document into a tree; nothing when it cannot be read at all. Whatever is wrong is
// added to `problems`: a tree comes back also when parts of it are refused, so that the rest can be
// looked at. An empty document is a null.
std::optional<Node> read_yaml(std::string_view text, Problems& problems);

}  // namespace fopd::config

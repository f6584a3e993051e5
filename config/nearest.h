#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::config {

// The one of `candidates` that `word` most likely means: with one letter wrong, missing, added or
// swapped, or two if both have five letters or more; ignores case, and treats '-' and '_' as equal.
// The first of equally near ones; nothing if none is near.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

}  // namespace fopd::config

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::config {

// The one of `candidates` that `word` was most likely meant to be: few letters wrong, missing, too
// many or swapped; case and '-' for '_' do not count. The earliest of equals; nothing when none is
// near.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

}  // namespace fopd::config

#include "core/secret_mode.h"

#include <array>
#include <cstdio>

namespace fopd::core {

std::string secret_mode_problem(mode_t mode, mode_t forbidden) {
    if ((mode & forbidden) == 0) return {};
    std::array<char, 8> digits{};
    std::snprintf(digits.data(), digits.size(), "%04o", static_cast<unsigned>(mode & 07777U));
    return std::string("its mode ") + digits.data() +
           " lets other users read or change it; run chmod 0600 on it, and replace the key";
}

}  // namespace fopd::core

#pragma once

#include <string>

#include <sys/types.h>

namespace fopd::core {

// Checks the mode of a file that holds a secret. Empty if it has none of the `forbidden` permission
// bits; otherwise the problem and its remedy, for people. Another user may have read the secret
// already, so the remedy includes a new one.
std::string secret_mode_problem(mode_t mode, mode_t forbidden);

}  // namespace fopd::core

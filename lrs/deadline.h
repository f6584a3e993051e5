#pragma once

#include <memory>

#include "lrs/policy.h"

namespace fopd::lrs {

// Another policy's order, but what has waited for `wait_max` goes before everything else, the
// oldest first, whatever the other one would hold back. Keeps each client's order where the other
// one does.
std::unique_ptr<Policy> make_deadline(std::unique_ptr<Policy> inner, Duration wait_max);

}  // namespace fopd::lrs

#pragma once

#include <memory>

#include "lrs/policy.h"

namespace fopd::lrs {

// Uses the order of another policy, `inner`, but a request that has waited for `wait_max` is served
// first, the oldest first, even if `inner` would hold it back. Keeps each client's order if `inner`
// does.
std::unique_ptr<Policy> make_deadline(std::unique_ptr<Policy> inner, Duration wait_max);

}  // namespace fopd::lrs

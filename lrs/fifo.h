#pragma once

#include <memory>

#include "lrs/policy.h"

namespace fopd::lrs {

// Serves requests in the order of arrival, without limits.
std::unique_ptr<Policy> make_fifo();

}  // namespace fopd::lrs

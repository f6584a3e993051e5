#pragma once

#include <memory>

#include "lrs/policy.h"

namespace fopd::lrs {

// In the order of arrival; knows no limits.
std::unique_ptr<Policy> make_fifo();

}  // namespace fopd::lrs

#pragma once

#include <string>

#include "config/schema.h"

namespace fopd::config {

// The file to start from: every key with its default, below comments that say what it is for, what
// is allowed and whether it can change at run time. Loading it gives the defaults; a required key,
// which has none, has its example.
std::string annotated_sample(const Schema& schema);

}  // namespace fopd::config

#pragma once

#include <string>

#include "config/schema.h"

namespace fopd::config {

// The sample file: every key with its default, after comments with its purpose, its allowed values,
// and whether it can change at run time. Loading the file gives the defaults, but for keys that
// have an example: required ones, and those for which another value suits most nodes.
std::string annotated_sample(const Schema& schema);

}  // namespace fopd::config

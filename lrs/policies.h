#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "lrs/policy.h"

namespace fopd::lrs {

struct PolicyEntry {
    std::string_view name;     // The word users write in the configuration.
    std::string_view summary;  // One line, for lists and documents.
    std::unique_ptr<Policy> (*make)();
};

// Every policy there is, by name. Lives for ever.
std::span<const PolicyEntry> policies();

// The one in force where the configuration names none.
const PolicyEntry& default_policy();

}  // namespace fopd::lrs

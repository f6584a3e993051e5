#pragma once

#include <string_view>

namespace fopd::daemon {

// The release and, if known, the commit it was built from: "0.1.0 (3f2a9c1)".
std::string_view version();

}  // namespace fopd::daemon

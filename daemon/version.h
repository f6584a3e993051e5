#pragma once

#include <string_view>

namespace fopd::daemon {

// "0.1.0 (3f2a9c1)": the release, and the commit it was built from where that is known.
std::string_view version();

}  // namespace fopd::daemon

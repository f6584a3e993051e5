// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string_view>

namespace fopd::client {

// The release and, if known, the commit it was built from: "0.1.0 (3f2a9c1)".
std::string_view version();

}  // namespace fopd::client

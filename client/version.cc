// SPDX-License-Identifier: BSD-2-Clause
#include "client/version.h"

namespace fopd::client {

std::string_view version() {
    return FOPD_VERSION;
}

}  // namespace fopd::client

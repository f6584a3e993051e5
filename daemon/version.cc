#include "daemon/version.h"

namespace fopd::daemon {

std::string_view version() {
    return FOPD_VERSION;
}

}  // namespace fopd::daemon

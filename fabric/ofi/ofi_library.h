#pragma once

#include <rdma/fabric.h>

#include "core/result.h"

namespace fopd::fabric {

// The functions of libfabric that are looked up by name; all others are called through its objects.
struct OfiLibrary {
    decltype(&::fi_getinfo) getinfo;
    decltype(&::fi_freeinfo) freeinfo;
    decltype(&::fi_dupinfo) dupinfo;
    decltype(&::fi_fabric) fabric;
    decltype(&::fi_strerror) strerror;
    decltype(&::fi_version) version;
};

// Loads libfabric once, when the first transport needs it, and never unloads it. Programs that do
// not need it save a fifth of a second, in which it looks for adapters. kUnsupported: it is not
// installed.
Result<void> load_ofi_library();
// REQUIRES: loaded.
const OfiLibrary& ofi();

}  // namespace fopd::fabric

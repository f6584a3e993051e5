#pragma once

#include <rdma/fabric.h>

#include "core/result.h"

namespace fopd::fabric {

// The functions of libfabric that are called by name; what it makes is called through itself.
struct OfiLibrary {
    decltype(&::fi_getinfo) getinfo;
    decltype(&::fi_freeinfo) freeinfo;
    decltype(&::fi_dupinfo) dupinfo;
    decltype(&::fi_fabric) fabric;
    decltype(&::fi_strerror) strerror;
    decltype(&::fi_version) version;
};

// Loads libfabric, once in a process and for good, when the first transport needs it: a program
// that does not would pay a fifth of a second for adapters that are not there. kUnsupported where
// it is not installed.
Result<void> load_ofi_library();
// Requires: it has been loaded.
const OfiLibrary& ofi();

}  // namespace fopd::fabric

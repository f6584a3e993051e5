#pragma once

#include <memory>

#include "fabric/ofi_transport.h"

namespace fopd::fabric {

// The symbol that the plug-in for libfabric exports. The plug-in is a file of its own, made of
// fabric/ofi/, and is loaded when an address asks for it (decision 0047).
//
// Program and plug-in each have a copy of core/ and of parts of fabric/, and use the same objects.
// Therefore both must be made from the same sources with the same compiler and options: `build`
// says from which, and a program uses `make` only if `build` is its own.
struct OfiPlugIn {
    const char* build;
    std::unique_ptr<Transport> (*make)(core::EventSink& events, OfiOptions options);
};

inline constexpr const char* kOfiPlugInFile = "fopd-ofi.so";
// The name of the exported OfiPlugIn. It must be changed if `build` is no longer the first member.
inline constexpr const char* kOfiPlugInSymbol = "fopd_ofi_plug_in_1";

}  // namespace fopd::fabric

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/events.h"
#include "fabric/transport.h"

namespace fopd::fabric {

struct OfiOptions {
    // "ofi+tcp" or "verbs": the only scheme of addresses that this transport accepts.
    std::string scheme = kOfiTcpScheme;
    // Returns an unpredictable key for opened memory, for providers that let us choose it. Called
    // from every thread that has a machine.
    std::function<std::uint64_t()> random_key;
};

// Connections over libfabric: connection-oriented endpoints with a shared receive context.
// Addresses are numeric, because resolving host names blocks. Loads the plug-in and with it
// libfabric, unless they are loaded, and never unloads them. If the plug-in cannot be loaded or the
// provider is not available, make_machine() and listen() return the reason.
std::unique_ptr<Transport> make_ofi_transport(core::EventSink& events, OfiOptions options);

}  // namespace fopd::fabric

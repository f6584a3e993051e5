#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/events.h"
#include "fabric/transport.h"

namespace fopd::fabric {

struct OfiOptions {
    // "tcp" or "verbs": the only scheme this transport takes addresses of.
    std::string scheme = "tcp";
    // What nobody outside can guess: the keys of opened memory, where the provider lets us choose
    // them. Called from every thread that has a machine.
    std::function<std::uint64_t()> random_key;
};

// Connections over libfabric: its connection-oriented endpoints with a shared receive context. Host
// names are not resolved here, because that blocks: addresses are numeric. When the provider cannot
// be had, make_machine() and listen() say why.
std::unique_ptr<Transport> make_ofi_transport(core::EventSink& events, OfiOptions options);

}  // namespace fopd::fabric

#pragma once

#include <string>

#include "fabric/session/session_host.h"

namespace fopd::sim {

// The host options of a client's machine. It offers a fixed number of receive buffers, one for each
// reply that may be outstanding.
inline fabric::HostOptions client_host_options(
    const std::string& name, fop::Protection protection = fop::Protection::kSeal) {
    fabric::HostOptions options;
    options.machine = {
        .receive_buffer_count = 288, .receive_buffer_bytes = 36U << 10, .host = name};
    options.send_buffer_count = 64;
    options.send_buffer_bytes = 16U << 10;
    options.message_credits_floor = options.message_credits_max = 70;
    options.protection = protection;
    return options;
}

}  // namespace fopd::sim

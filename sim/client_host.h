#pragma once

#include <string>

#include "fabric/session/session_host.h"

namespace fopd::sim {

// What a client's machine is like. It gives away a fixed number of buffers, one for each reply
// there may be.
inline fabric::HostOptions client_host_options(const std::string& name) {
    fabric::HostOptions options;
    options.machine = {
        .receive_buffer_count = 288, .receive_buffer_bytes = 36U << 10, .host = name};
    options.send_buffer_count = 64;
    options.send_buffer_bytes = 16U << 10;
    options.message_credits_floor = options.message_credits_max = 70;
    return options;
}

}  // namespace fopd::sim

#pragma once

#include <fstream>

namespace fopd::testing {

// Whether this machine has an IPv6 address. The size of a file in /proc is 0, so it must be read.
inline bool has_ipv6() {
    return std::ifstream("/proc/net/if_inet6").peek() != std::ifstream::traits_type::eof();
}

}  // namespace fopd::testing

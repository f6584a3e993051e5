#pragma once

#include <cstddef>
#include <optional>

namespace fopd::bench {

// The cost of echoes without any code of fopd, in microseconds from one echo to the next.

// An echo of fi_pingpong, which is two of its transfers: provider tcp, endpoints msg, both sides
// look for work without sleeping. Nothing if the program is not installed.
std::optional<double> pingpong_echo_us(std::size_t bytes, int rounds);

// send() and recv() on a plain socket, both sides asleep in poll() in between.
double socket_echo_us(std::size_t bytes, int rounds);

}  // namespace fopd::bench

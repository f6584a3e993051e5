#pragma once

#include <string>

namespace fopd::bench {

// Measures sends of datagrams to a host behind a network device that drops all packets, such as an
// ifb device: a copying send, MSG_ZEROCOPY and IORING_OP_SEND_ZC. Prints a table.
void measure_sink_sends(const std::string& host, int rounds);

}  // namespace fopd::bench

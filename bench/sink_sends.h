#pragma once

#include <string>

namespace fopd::bench {

// Measures sends of datagrams to a host behind a device that drops what it is to send, as an ifb
// device does: a copying send beside MSG_ZEROCOPY and IORING_OP_SEND_ZC. Prints a table.
void measure_sink_sends(const std::string& host, int rounds);

}  // namespace fopd::bench

#pragma once

#include <cstddef>
#include <span>

namespace fopd::fop {

// Reads whatever it is given, touches all that the readers hand out, writes it anew and reads that
// again, which must give the same. Returns whether the bytes were a message at all; what must not
// happen with any bytes is ENSUREd. REQUIRES: the bytes lie at a multiple of kMessageAlignment.
bool reread(std::span<const std::byte> message);

}  // namespace fopd::fop

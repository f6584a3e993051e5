#pragma once

#include <algorithm>
#include <cstddef>

#include "fabric/transport.h"

namespace fopd::fabric {

// False: the peer answered a read with fewer bytes than requested. `told_bytes` is the length that
// the provider reports, 0 if it reports none. REQUIRES: OfiConnection has marked the read's memory.
inline bool came_whole(const TransferOp& op, std::size_t told_bytes) {
    if (op.kind != TransferOp::Kind::kRead) return true;
    if (told_bytes != 0 && told_bytes != op.local.bytes.size()) return false;
    // A read shorter than the mark has no mark, because its bytes could equal a shorter mark by
    // chance.
    if (op.local.bytes.size() < op.tail.size()) return true;
    return !std::ranges::equal(op.local.bytes.last(op.tail.size()), op.tail);
}

}  // namespace fopd::fabric

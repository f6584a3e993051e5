#include "fabric/rpc/incoming.h"

#include <algorithm>

#include "fop/hash.h"

namespace fopd::fabric {

RequestOwner request_owner(std::span<const std::byte, 16> client, std::string_view principal) {
    const fop::Hash whole = fop::hash({client, std::as_bytes(std::span(principal))});
    RequestOwner owner;
    std::copy_n(whole.begin(), owner.size(), owner.begin());
    return owner;
}

}  // namespace fopd::fabric

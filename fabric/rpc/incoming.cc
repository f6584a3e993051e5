#include "fabric/rpc/incoming.h"

#include <algorithm>

#include "fop/hash.h"

namespace fopd::fabric {

RequestOwner request_owner(std::span<const std::byte, 16> client, fop::AuthKind kind,
                           std::string_view principal) {
    // Disks store owners of principals without the kind. Every other kind is a control character,
    // which no name contains.
    const std::array kinds{static_cast<std::byte>(kind)};
    const bool is_proved = kind == fop::AuthKind::kPrincipal;
    const fop::Hash whole = fop::hash(
        {client, std::as_bytes(std::span(principal)), std::span(kinds).first(is_proved ? 0 : 1)});
    RequestOwner owner;
    std::copy_n(whole.begin(), owner.size(), owner.begin());
    return owner;
}

}  // namespace fopd::fabric

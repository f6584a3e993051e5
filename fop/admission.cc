#include "fop/admission.h"

namespace fopd::fop {

std::optional<KnownKey> Admission::find(const Identity& claimed) const {
    std::optional<KnownKey> known;
    if (claimed.kind != AuthKind::kNone) {
        if (keys != nullptr) known = keys->find(claimed.kind, claimed.key_id);
        if (!known) return std::nullopt;
        // All peers share one key, and each states its own name.
        if (claimed.kind == AuthKind::kPeer) known->identity.name = claimed.name;
    } else {
        if (!unauthenticated) return std::nullopt;
        known = KnownKey{.key = {}, .identity = claimed, .delegation = Delegation::kAllowed};
        known->identity.groups.clear();
        known->identity.rights = *unauthenticated;
    }
    known->identity.user = claimed.user.empty() ? known->identity.name : claimed.user;
    return known;
}

bool Admission::still_holds(const Identity& identity) const {
    const auto known = find(identity);
    return known && known->identity == identity && may_act(*known);
}

bool may_act(const KnownKey& known) {
    return known.identity.user == known.identity.name || known.delegation == Delegation::kAllowed;
}

}  // namespace fopd::fop

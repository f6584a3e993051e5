#pragma once

#include <memory>
#include <optional>

#include "fop/principal.h"

namespace fopd::fop {

// The rules for admitting clients. A configuration reload replaces them as a whole.
struct Admission {
    std::shared_ptr<const KeyFinder> keys = {};
    // The rights of unauthenticated clients; empty: such clients are refused.
    std::optional<Rights> unauthenticated = {};

    // Whom a client becomes that claims this kind, key, name and user, once it has proved the key.
    // Nothing when there is no such key, or a key is needed and none is named.
    std::optional<KnownKey> find(const Identity& claimed) const;
    // Whether who became this at an earlier time would become the same now.
    bool still_holds(const Identity& identity) const;
};

// Whether it may act for the user it names.
bool may_act(const KnownKey& known);

}  // namespace fopd::fop

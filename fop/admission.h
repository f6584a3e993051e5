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

    // The identity of a client that claims this kind, key, name and user, provided that it proves
    // the key. Nothing if there is no such key, or a key is required and none is named.
    std::optional<KnownKey> find(const Identity& claimed) const;
    // Whether a client with this identity would get the same identity now.
    bool still_holds(const Identity& identity) const;
};

// Whether it may act for the user that it names.
bool may_act(const KnownKey& known);

}  // namespace fopd::fop

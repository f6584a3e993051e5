#pragma once

#include <optional>
#include <string_view>

#include "fop/rights.h"
#include "objects/names.h"
#include "store/fid.h"

namespace fopd::reqh {

// The target of a fop: an object, only a pool, or neither.
struct Matter {
    std::optional<objects::PoolId> pool{};
    std::optional<store::Fid> object{};
};

// The rights that a fop's token lends its sender, in addition to the sender's own. None without a
// token.
struct Lent {
    fop::Rights rights{};
    std::optional<objects::PoolId> pool{};  // Only in this pool; empty: in every pool.
    std::optional<store::Fid> object{};     // Only for this object; empty: for all.
    // Why the token lends nothing at all; null otherwise. Static.
    const char* fault = nullptr;

    bool lends(fop::Rights needed, const Matter& matter) const { return !why_not(needed, matter); }
    // In words, why the rights are not lent; empty if there was no token. Static. Nothing if they
    // are lent.
    std::optional<std::string_view> why_not(fop::Rights needed, const Matter& matter) const;
};

}  // namespace fopd::reqh

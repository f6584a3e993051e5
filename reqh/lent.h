#pragma once

#include <optional>
#include <string_view>

#include "fop/rights.h"
#include "objects/names.h"
#include "store/fid.h"

namespace fopd::reqh {

// What a fop is about: an object, or only a pool, or neither.
struct Matter {
    std::optional<objects::PoolId> pool{};
    std::optional<store::Fid> object{};
};

// What the token that came with a fop lends its sender, beside what that may do anyway. Without a
// token, nothing.
struct Lent {
    fop::Rights rights{};
    std::optional<objects::PoolId> pool{};  // Where; empty: in every pool.
    std::optional<store::Fid> object{};     // With which one alone; empty: with every one.
    // Why the token that was shown lends nothing at all; null otherwise. Static.
    const char* fault = nullptr;

    bool lends(fop::Rights needed, const Matter& matter) const { return !why_not(needed, matter); }
    // Why it does not, for people: static, and empty when no token was shown. Nothing when it does.
    std::optional<std::string_view> why_not(fop::Rights needed, const Matter& matter) const;
};

}  // namespace fopd::reqh

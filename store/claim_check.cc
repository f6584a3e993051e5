#include "store/claim_check.h"

#include <algorithm>

#include "store/object.h"

namespace fopd::store {

Task<Result<std::vector<NameClaim>>> ClaimCheck::unknown(std::vector<NameClaim> claims) {
    if (claims.empty()) co_return claims;
    NameSink& names = *volume_.names();
    const auto asked = co_await names.remove_known(&claims);
    if (!asked) co_return std::unexpected(asked.error());
    if (claims.empty()) co_return claims;
    const auto kept = keep_only(claims, Claimed::kByObject);
    if (!kept) co_return std::unexpected(kept.error());
    const auto told = co_await volume_.wait_names_told(cancel_);
    if (!told) co_return std::unexpected(told.error());
    const auto again = co_await names.remove_known(&claims);
    if (!again) co_return std::unexpected(again.error());
    const auto still = keep_only(claims, Claimed::kByObject);
    if (!still) co_return std::unexpected(still.error());
    co_return claims;
}

Task<Result<std::vector<NameClaim>>> ClaimCheck::unmade(std::vector<NameClaim> claims) {
    constexpr unsigned kLooks = 2;
    const auto kept = keep_only(claims, Claimed::kByNone);
    if (!kept) co_return std::unexpected(kept.error());
    for (unsigned look = 0; look < kLooks && !claims.empty(); ++look) {
        const auto told = co_await volume_.wait_names_told(cancel_);
        if (!told) co_return std::unexpected(told.error());
        std::vector<NameClaim> unknown = claims;
        const auto asked = co_await volume_.names()->remove_known(&unknown);
        if (!asked) co_return std::unexpected(asked.error());
        std::erase_if(claims, [&unknown](const NameClaim& claim) {
            return std::ranges::find(unknown, claim) != unknown.end();
        });
        const auto still = keep_only(claims, Claimed::kByNone);
        if (!still) co_return std::unexpected(still.error());
    }
    co_return claims;
}

Result<bool> ClaimCheck::is_made(const NameClaim& claim) const {
    const auto value = volume_.get(Key::object(claim.fid));
    if (!value) return std::unexpected(value.error());
    if (!*value) return false;
    const auto object = read_object(**value);
    return object && object->pool == claim.pool && object->name == claim.name &&
           object->name_version == claim.version;
}

// Keeps only the claims that an object makes in this turn, or only the claims that no object makes.
Result<void> ClaimCheck::keep_only(std::vector<NameClaim>& claims, Claimed claimed) const {
    Result<void> result;
    std::erase_if(claims, [&](const NameClaim& claim) {
        const auto made = is_made(claim);
        if (!made) result = std::unexpected(made.error());
        return made && *made != (claimed == Claimed::kByObject);
    });
    volume_.release();
    return result;
}

}  // namespace fopd::store

#include "reqh/tokens.h"

#include <algorithm>
#include <utility>

#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::reqh {

Result<const TokenGrant*> TokenCache::check(std::span<const std::byte> token, Instant now) {
    ENSURE(!token.empty());
    ENSURE(token.size() <= fop::kTokenBytesMax);
    if (places_.empty()) places_.resize(kPlaceCount);
    Place& place = places_[core::crc32c(token) % kPlaceCount];
    const auto known = std::span(place.token).first(place.token_bytes);
    const bool is_known = std::ranges::equal(known, token) &&
                          place.version == verdicts_.version() && now < place.grant.expires_at;
    if (is_known) return &place.grant;

    auto grant = verdicts_.check(token, now);
    if (!grant) return std::unexpected(grant.error());
    place.grant = std::move(*grant);
    place.version = verdicts_.version();
    place.token_bytes = token.size();
    std::ranges::copy(token, place.token.begin());
    return &place.grant;
}

}  // namespace fopd::reqh

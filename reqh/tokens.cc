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
    Place& place = places_[place_of(token)];
    if (is_there(place, token, now)) return &place.grant;

    auto grant = verdicts_.check(token, now);
    if (!grant) return std::unexpected(grant.error());
    place.grant = std::move(*grant);
    place.version = verdicts_.version();
    place.token_bytes = token.size();
    std::ranges::copy(token, place.token.begin());
    return &place.grant;
}

bool TokenCache::knows(std::span<const std::byte> token, Instant now) const {
    return !places_.empty() && is_there(places_[place_of(token)], token, now);
}

std::size_t TokenCache::place_of(std::span<const std::byte> token) {
    return core::crc32c(token) % kPlaceCount;
}

bool TokenCache::is_there(const Place& place, std::span<const std::byte> token, Instant now) const {
    const auto known = std::span(place.token).first(place.token_bytes);
    return std::ranges::equal(known, token) && place.version == verdicts_.version() &&
           now < place.grant.expires_at;
}

bool TokenChecksBeforeTurn::take(std::string_view share, Instant now) {
    if (now - began_ >= kInterval) {
        taken_.clear();
        began_ = now;
    }
    auto known = taken_.find(share);
    if (known == taken_.end()) known = taken_.emplace(share, 0).first;
    if (known->second == kMax) return false;
    ++known->second;
    return true;
}

}  // namespace fopd::reqh

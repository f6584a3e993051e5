#include "reqh/tokens.h"

#include <algorithm>
#include <utility>

#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::reqh {

Result<const TokenGrant*> TokenCache::check(std::span<const std::byte> token, Instant now) {
    ENSURE(!token.empty());
    ENSURE(token.size() <= fop::kTokenBytesMax);
    if (entries_.empty()) entries_.resize(kEntryCount);
    Entry& entry = entries_[index_of(token)];
    if (is_there(entry, token, now)) return &entry.grant;

    auto grant = verdicts_.check(token, now);
    if (!grant) return std::unexpected(grant.error());
    entry.grant = std::move(*grant);
    entry.version = verdicts_.version();
    entry.token_bytes = token.size();
    std::ranges::copy(token, entry.token.begin());
    return &entry.grant;
}

bool TokenCache::knows(std::span<const std::byte> token, Instant now) const {
    return !entries_.empty() && is_there(entries_[index_of(token)], token, now);
}

std::size_t TokenCache::index_of(std::span<const std::byte> token) {
    return core::crc32c(token) % kEntryCount;
}

bool TokenCache::is_there(const Entry& entry, std::span<const std::byte> token, Instant now) const {
    const auto known = std::span(entry.token).first(entry.token_bytes);
    return std::ranges::equal(known, token) && entry.version == verdicts_.version() &&
           now < entry.grant.expires_at;
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

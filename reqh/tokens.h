#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "fop/fid.h"
#include "fop/message.h"
#include "fop/rights.h"

namespace fopd::reqh {

// The access that a valid capability token grants.
struct TokenGrant {
    fop::Rights rights{};
    std::string principal{};           // The only principal that may use it; empty: any bearer.
    std::string pool{};                // Only in this pool; empty: in every pool.
    std::optional<fop::Fid> object{};  // Only for this object; empty: for all.
    Instant expires_at = kNever;
};

// Verifies tokens: signature, expiry, revocation. Costs a signature check.
class TokenVerdicts {
public:
    virtual ~TokenVerdicts() = default;
    // kDenied if the token is not valid at `now`.
    virtual Result<TokenGrant> check(std::span<const std::byte> token, Instant now) = 0;
    // Changes whenever earlier verdicts may no longer hold: when the issuer's key or the
    // revocations have changed.
    virtual std::uint64_t version() const = 0;
};

// A locality's cache of valid tokens. Bounded: a new token replaces another. The hash selects the
// entry; tokens are compared byte by byte.
class TokenCache {
public:
    explicit TokenCache(TokenVerdicts& verdicts) : verdicts_(verdicts) {}

    // The token's grant, valid until the next call; kDenied. REQUIRES: the token is not empty, and
    // has at most fop::kTokenBytesMax bytes.
    Result<const TokenGrant*> check(std::span<const std::byte> token, Instant now);
    // Whether check() would find the token valid without a signature check. REQUIRES: as for
    // check().
    bool knows(std::span<const std::byte> token, Instant now) const;

private:
    static constexpr std::size_t kEntryCount = 256;  // A power of two.
    struct Entry {
        std::uint64_t version = 0;
        std::size_t token_bytes = 0;  // 0: empty.
        std::array<std::byte, fop::kTokenBytesMax> token;
        TokenGrant grant;
    };

    static std::size_t index_of(std::span<const std::byte> token);
    bool is_there(const Entry& entry, std::span<const std::byte> token, Instant now) const;

    TokenVerdicts& verdicts_;
    std::vector<Entry> entries_;  // Allocated on first use.
};

// Limits the signature checks of tokens before the fop's turn, for each principal separately. They
// are not charged to a class, and a principal without a right could send new tokens all the time.
class TokenChecksBeforeTurn {
public:
    // A hundred checks take about a hundredth of a locality's time.
    static constexpr std::uint32_t kMax = 100;
    static constexpr Duration kInterval{1s};

    // Whether one more token may be checked; the name is fop::share_name().
    bool take(std::string_view share, Instant now);

private:
    Instant began_{};
    std::map<std::string, std::uint32_t, std::less<>> taken_;  // Checks since began_, by share.
};

}  // namespace fopd::reqh

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "fop/fid.h"
#include "fop/message.h"
#include "fop/rights.h"

namespace fopd::reqh {

// What a genuine capability token lets be done.
struct TokenGrant {
    fop::Rights rights{};
    std::string principal{};           // Who may use it; empty: any bearer.
    std::string pool{};                // Where; empty: in every pool.
    std::optional<fop::Fid> object{};  // With which one alone; empty: with every one.
    Instant expires_at = kNever;
};

// Tells genuine tokens from others: signature, expiry, revocation. Costs a signature check.
class TokenVerdicts {
public:
    virtual ~TokenVerdicts() = default;
    // kDenied when the token counts for nothing at `now`.
    virtual Result<TokenGrant> check(std::span<const std::byte> token, Instant now) = 0;
    // Another number than before when verdicts given earlier need not hold any more: the issuer's
    // key or the revocations have changed.
    virtual std::uint64_t version() const = 0;
};

// A locality's memory of the tokens it found genuine. Bounded: a token takes the place of another.
// Tokens are compared byte by byte, their hash only says where to look.
class TokenCache {
public:
    explicit TokenCache(TokenVerdicts& verdicts) : verdicts_(verdicts) {}

    // What the token grants, until the next call; kDenied. Requires: not empty, and at most
    // fop::kTokenBytesMax.
    Result<const TokenGrant*> check(std::span<const std::byte> token, Instant now);

private:
    static constexpr std::size_t kPlaceCount = 256;  // A power of two.
    struct Place {
        std::uint64_t version = 0;
        std::size_t token_bytes = 0;  // 0: empty.
        std::array<std::byte, fop::kTokenBytesMax> token;
        TokenGrant grant;
    };

    TokenVerdicts& verdicts_;
    std::vector<Place> places_;  // Made with the first token.
};

}  // namespace fopd::reqh

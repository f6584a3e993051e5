#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "fop/fid.h"
#include "fop/key.h"
#include "fop/rights.h"

namespace fopd::fop {

using TokenId = std::array<std::byte, 16>;
// Names an object by the bytes of its fid, the highest first; zeros for every object.
using TokenObject = std::array<std::byte, 16>;
TokenObject token_object(const Fid& fid);
// Returns nothing if the token is valid for every object.
std::optional<Fid> fid_of(const TokenObject& object);

// A capability: says that whoever shows it, or only one principal, may do something to a pool or an
// object until some time. Signed by the issuer, checked with the issuer's public half alone.
struct Token {
    static constexpr std::size_t kSizeBytesMax = 256;

    TokenId id{};                // Random; by it a single token is revoked.
    std::string principal = {};  // Whom it is bound to; empty for whoever holds it.
    Rights rights = {};
    std::string pool = {};  // Empty for every pool.
    TokenObject object{};
    std::int64_t not_after = 0;    // The last second it is good, since 1970.
    std::uint64_t generation = 0;  // By it all older tokens are revoked at once.

    friend bool operator==(const Token&, const Token&) = default;
};

// The public half of an issuer's key; no secret.
struct IssuerPublic {
    std::array<std::byte, 32> bytes{};

    friend bool operator==(const IssuerPublic&, const IssuerPublic&) = default;
};
// 64 hexadecimal digits, as a file holds them. kInvalid with the reason as its context.
std::string to_text(const IssuerPublic& issuer);
Result<IssuerPublic> parse_issuer_public(std::string_view text);

// Signs tokens with Ed25519. The seed has the same text form as every other key.
class Issuer {
public:
    explicit Issuer(const Key& seed);

    const IssuerPublic& public_half() const { return public_half_; }
    // The signed bytes. Requires: a principal and a pool that are names.
    std::vector<std::byte> sign(const Token& token) const;

private:
    SecretBytes<64> secret_;
    IssuerPublic public_half_;
};

// For files and command lines: base64url without padding. Reading passes over white space around
// it; kInvalid with the reason as its context.
std::string token_to_text(std::span<const std::byte> token);
Result<std::vector<std::byte>> parse_token_text(std::string_view text);

// What a token says, whoever signed it: to be shown to people, never to be believed. kInvalid with
// the reason as its context.
Result<Token> read_unverified(std::span<const std::byte> token);

// What a daemon accepts. Never changed, only replaced; whoever keeps verdicts forgets them then,
// and when the token's time is over.
class TokenChecker {
public:
    struct Options {
        IssuerPublic issuer = {};
        std::uint64_t generation_min = 0;  // Older tokens are revoked.
        std::vector<TokenId> revoked = {};
    };
    struct Shown {
        WallTime now;
        // Who shows the token; empty when that was not proved.
        std::string_view principal = {};
    };

    explicit TokenChecker(Options options);

    // kInvalid for what is no token, kDenied for one that is not the issuer's, expired, revoked, or
    // somebody else's; the reason is the context. Nothing is said of a token the issuer did not
    // sign.
    Result<Token> check(std::span<const std::byte> token, const Shown& shown) const;

private:
    Options options_;  // `revoked` is sorted.
};

}  // namespace fopd::fop

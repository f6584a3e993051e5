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
// Identifies an object by the bytes of its fid, highest first; zeros: every object.
using TokenObject = std::array<std::byte, 16>;
TokenObject token_object(const Fid& fid);
// Returns nothing if the token is valid for every object.
std::optional<Fid> fid_of(const TokenObject& object);

// A capability: allows its bearer, or only one principal, certain rights on a pool or an object
// until some time. Signed by the issuer, and verified with the issuer's public key alone.
struct Token {
    static constexpr std::size_t kSizeBytesMax = 256;

    TokenId id{};                // Random; used to revoke a single token.
    std::string principal = {};  // The only principal that may use it; empty: any bearer.
    Rights rights = {};
    std::string pool = {};  // Empty for every pool.
    TokenObject object{};
    std::int64_t not_after = 0;    // The last second in which it is valid, since 1970.
    std::uint64_t generation = 0;  // Used to revoke all older tokens at once.

    friend bool operator==(const Token&, const Token&) = default;
};

// The public half of an issuer's key; not secret.
struct IssuerPublic {
    std::array<std::byte, 32> bytes{};

    friend bool operator==(const IssuerPublic&, const IssuerPublic&) = default;
};
// 64 hexadecimal digits, the form in files. kInvalid with the reason as context.
std::string to_text(const IssuerPublic& issuer);
Result<IssuerPublic> parse_issuer_public(std::string_view text);

// Signs tokens with Ed25519. The seed has the same text form as other keys.
class Issuer {
public:
    explicit Issuer(const Key& seed);

    const IssuerPublic& public_half() const { return public_half_; }
    // The signed bytes. REQUIRES: valid names of the principal and the pool.
    std::vector<std::byte> sign(const Token& token) const;

private:
    SecretBytes<64> secret_;
    IssuerPublic public_half_;
};

// The form for files and command lines: base64url without padding. Parsing ignores surrounding
// white space; kInvalid with the reason as context.
std::string token_to_text(std::span<const std::byte> token);
Result<std::vector<std::byte>> parse_token_text(std::string_view text);

// A token's contents without verification: for display only, never to be trusted. kInvalid with the
// reason as context.
Result<Token> read_unverified(std::span<const std::byte> token);

// Decides which tokens a daemon accepts. Immutable, replaced as a whole; a cache of verdicts must
// be cleared then, and each verdict expires with its token.
class TokenChecker {
public:
    struct Options {
        IssuerPublic issuer = {};
        std::uint64_t generation_min = 0;  // Older tokens are revoked.
        std::vector<TokenId> revoked = {};
    };
    struct Shown {
        WallTime now;
        // The proved principal that shows the token; empty if not proved.
        std::string_view principal = {};
    };

    explicit TokenChecker(Options options);

    // kInvalid if it is not a token, kDenied if it is not from the issuer, expired, revoked, or
    // bound to another principal; the reason is the context. For a token that the issuer did not
    // sign, nothing of its contents is revealed.
    Result<Token> check(std::span<const std::byte> token, const Shown& shown) const;

private:
    Options options_;  // `revoked` is sorted.
};

}  // namespace fopd::fop

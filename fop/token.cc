#include "fop/token.h"

#include <algorithm>
#include <utility>

#include <sodium.h>

#include "core/byte_order.h"
#include "core/ensure.h"
#include "fop/base64.h"
#include "fop/bytes.h"
#include "fop/hex.h"
#include "fop/invalid.h"
#include "fop/principal.h"
#include "fop/unsigned_bytes.h"

namespace fopd::fop {
namespace {

constexpr std::uint8_t kTokenLayout = 1;
constexpr std::size_t kSignatureBytes = crypto_sign_ed25519_BYTES;
constexpr std::string_view kWhiteSpace = " \t\r\n";
// Signed together with the token, so that the signature is valid for nothing else.
constexpr std::string_view kLabel = "fopd token";
constexpr std::int64_t kSecondNs = 1'000'000'000;

std::unexpected<Error> denied(const char* why) {
    return std::unexpected(Error{.code = Errc::kDenied, .context = why});
}

// The signed data: the label, and the token without the signature.
struct Signed {
    explicit Signed(std::span<const std::byte> body) {
        ByteWriter writer(memory);
        writer.put(std::as_bytes(std::span(kLabel)));
        writer.put(body);
        bytes = writer.written();
    }
    Signed(const Signed&) = delete;
    Signed& operator=(const Signed&) = delete;

    std::array<std::byte, Token::kSizeBytesMax + kLabel.size()> memory;
    std::span<const std::byte> bytes;
};

// REQUIRES: a length that a token can have.
std::span<const std::byte> without_signature(std::span<const std::byte> token) {
    return token.first(token.size() - kSignatureBytes);
}

bool has_length_of_token(std::span<const std::byte> token) {
    return token.size() > kSignatureBytes && token.size() <= Token::kSizeBytesMax;
}

constexpr const char* kBadTokenLength = "no token has this length";

Result<Token> decode(std::span<const std::byte> body) {
    ByteReader reader(body);
    Token token;
    const auto layout = reader.number<std::uint8_t>();
    const auto zero = reader.number<std::uint8_t>();
    const auto rights = Rights::from_bits(reader.number<std::uint16_t>());
    reader.take_into(token.id);
    reader.take_into(token.object);
    token.not_after = static_cast<std::int64_t>(reader.number<std::uint64_t>());
    token.generation = reader.number<std::uint64_t>();
    token.principal = reader.short_text();
    token.pool = reader.short_text();
    if (!reader.complete()) return invalid("the token is cut short, or goes on after its end");
    if (layout != kTokenLayout || zero != 0 || !rights)
        return invalid("a token of an unknown layout");
    if (!is_name(token.principal) || !is_name(token.pool)) {
        return invalid("a name in the token is too long or not plain text");
    }
    token.rights = *rights;
    return token;
}

}  // namespace

TokenObject token_object(const Fid& fid) {
    TokenObject object;
    store_big(object.data(), fid.high);
    store_big(object.data() + sizeof fid.high, fid.low);
    return object;
}

std::optional<Fid> fid_of(const TokenObject& object) {
    const Fid fid{.high = load_big<std::uint64_t>(object.data()),
                  .low = load_big<std::uint64_t>(object.data() + sizeof fid.high)};
    if (!fid.is_set()) return std::nullopt;
    return fid;
}

std::string to_text(const IssuerPublic& issuer) {
    return to_hex(issuer.bytes);
}

Result<IssuerPublic> parse_issuer_public(std::string_view text) {
    IssuerPublic issuer;
    const auto parsed = parse_hex(text, issuer.bytes);
    if (!parsed) return std::unexpected(parsed.error());
    return issuer;
}

Issuer::Issuer(const Key& seed) {
    const int failed = crypto_sign_ed25519_seed_keypair(out(public_half_.bytes),
                                                        out(secret_.writable()), in(seed.bytes()));
    ENSURE(failed == 0);
}

std::vector<std::byte> Issuer::sign(const Token& token) const {
    std::array<std::byte, Token::kSizeBytesMax> memory;
    ByteWriter writer(memory);
    writer.number(kTokenLayout);
    writer.number(std::uint8_t{0});
    writer.number(token.rights.bits());
    writer.put(token.id);
    writer.put(token.object);
    writer.number(static_cast<std::uint64_t>(token.not_after));
    writer.number(token.generation);
    ENSURE(is_name(token.principal));
    writer.short_text(token.principal);
    ENSURE(is_name(token.pool));
    writer.short_text(token.pool);

    const Signed what(writer.written());
    std::array<std::byte, kSignatureBytes> signature;
    const int failed = crypto_sign_ed25519_detached(out(signature), nullptr, in(what.bytes),
                                                    what.bytes.size(), in(secret_.bytes()));
    ENSURE(failed == 0);
    writer.put(signature);
    const auto written = writer.written();
    return {written.begin(), written.end()};
}

std::string token_to_text(std::span<const std::byte> token) {
    return to_base64(token, Base64::kUrlSafeUnpadded);
}

Result<std::vector<std::byte>> parse_token_text(std::string_view text) {
    const auto first = text.find_first_not_of(kWhiteSpace);
    if (first == std::string_view::npos) return invalid("there is no token");
    text = text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);

    const auto token = from_base64(text, Base64::kUrlSafeUnpadded);
    if (!token || token->size() > Token::kSizeBytesMax) {
        return invalid("a token is at most 256 bytes in base64url without padding");
    }
    return *token;
}

Result<Token> read_unverified(std::span<const std::byte> token) {
    if (!has_length_of_token(token)) return invalid(kBadTokenLength);
    return decode(without_signature(token));
}

TokenChecker::TokenChecker(Options options) : options_(std::move(options)) {
    std::ranges::sort(options_.revoked);
}

Result<Token> TokenChecker::check(std::span<const std::byte> token, const Shown& shown) const {
    if (!has_length_of_token(token)) return invalid(kBadTokenLength);
    const auto body = without_signature(token);
    const Signed what(body);
    const int failed =
        crypto_sign_ed25519_verify_detached(in(token.last(kSignatureBytes)), in(what.bytes),
                                            what.bytes.size(), in(options_.issuer.bytes));
    if (failed != 0) return denied("the token is not signed by the issuer");

    auto decoded = decode(body);
    if (!decoded) return decoded;
    if (shown.now.unix_ns / kSecondNs > decoded->not_after) return denied("the token has expired");
    if (decoded->generation < options_.generation_min) {
        return denied("the token is of a revoked generation");
    }
    if (std::ranges::binary_search(options_.revoked, decoded->id)) {
        return denied("the token is revoked");
    }
    if (!decoded->principal.empty() && decoded->principal != shown.principal) {
        return denied("the token is bound to another principal");
    }
    return decoded;
}

}  // namespace fopd::fop

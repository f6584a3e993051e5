#include "fop/token.h"

#include <string>

#include "fop/hex.h"
#include "tests/catch.h"
#include "tests/fop/sealed_examples.h"

namespace fopd::fop::token_test {
namespace {

const Issuer kIssuer(kIssuerSeed);
constexpr WallTime kInTime{.unix_ns = 1'700'000'000'000'000'000};
const TokenChecker::Shown kShown{.now = kInTime, .principal = "ann"};

TokenChecker checker(TokenChecker::Options options = {}) {
    options.issuer = kIssuer.public_half();
    return TokenChecker(options);
}

Token changed(auto change) {
    Token token = kToken;
    change(token);
    return token;
}

std::string refusal(const Token& token, const TokenChecker::Shown& shown,
                    TokenChecker::Options options = {}) {
    const auto checked = checker(std::move(options)).check(kIssuer.sign(token), shown);
    REQUIRE_FALSE(checked.has_value());
    REQUIRE(checked.error().code == Errc::kDenied);
    return checked.error().context;
}

}  // namespace

TEST_CASE("fop token: a signed token is decoded to its fields", "[fop]") {
    const auto bytes = kIssuer.sign(kToken);

    REQUIRE(checker().check(bytes, kShown).value() == kToken);
}

// Ed25519 of Python's cryptography package: the seed is bytes(range(0x80, 0xa0)), what is signed
// b"fopd token" and the token without its last 64 bytes.
TEST_CASE("fop token: key and signature are those of any Ed25519", "[fop]") {
    REQUIRE(to_text(kIssuer.public_half()) ==
            "cd14b37f956e953194ff7fb73b3d81dcc561d61a7538094b7c3e1a643ee5f3aa");
    REQUIRE(to_hex(kIssuer.sign(kToken)) ==
            "01000300505152535455565758595a5b5c5d5e5f101112131415161718191a1b1c1d1e1f"
            "00d2496b00000000050000000000000003616e6e0466617374"
            "9ce065150e8be1b98b6e1de1d9c29203488bd915195a4033417d186e35be03fe"
            "13d2c3cdea2bc3b1745fd5109f51d644faab428341bfbe6a848537bcadd1e70c");
}

TEST_CASE("fop token: the longest one keeps to its limit", "[fop]") {
    const auto token = changed([](Token& t) {
        t.principal = std::string(64, 'p');
        t.pool = std::string(64, 'q');
    });
    const auto bytes = kIssuer.sign(token);

    REQUIRE(bytes.size() <= Token::kSizeBytesMax);
    REQUIRE(checker()
                .check(bytes, {.now = kInTime, .principal = std::string_view(token.principal)})
                .value() == token);
}

TEST_CASE("fop token: any changed bit and any other issuer is refused", "[fop]") {
    auto bytes = kIssuer.sign(kToken);
    const auto ours = checker();
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        const auto flip = static_cast<std::byte>(1 << (bit % 8));
        bytes[bit / 8] ^= flip;
        REQUIRE(ours.check(bytes, kShown).error().code == Errc::kDenied);
        bytes[bit / 8] ^= flip;
    }
    const TokenChecker other({.issuer = Issuer(Key(counting_bytes<32>(0x81))).public_half()});
    REQUIRE(other.check(bytes, kShown).error().code == Errc::kDenied);
    const TokenChecker none({});
    REQUIRE(none.check(bytes, kShown).error().code == Errc::kDenied);
}

TEST_CASE("fop token: a length no token has is refused", "[fop]") {
    auto bytes = kIssuer.sign(kToken);
    const auto ours = checker();
    const std::size_t right = bytes.size();
    for (std::size_t size = 0; size <= 400; ++size) {
        if (size == right) continue;
        bytes.resize(size);
        REQUIRE_FALSE(ours.check(bytes, kShown).has_value());
    }
}

TEST_CASE("fop token: it is good in its last second and not in the next", "[fop]") {
    const std::int64_t last = kToken.not_after * 1'000'000'000;
    const auto bytes = kIssuer.sign(kToken);
    const TokenChecker::Shown still{.now = {last + 999'999'999}, .principal = "ann"};
    REQUIRE(checker().check(bytes, still).has_value());

    const TokenChecker::Shown late{.now = {last + 1'000'000'000}, .principal = "ann"};
    REQUIRE_THAT(refusal(kToken, late), ContainsSubstring("has expired"));
    REQUIRE_THAT(refusal(changed([](Token& t) { t.not_after = -1; }), kShown),
                 ContainsSubstring("has expired"));
}

TEST_CASE("fop token: a generation or a single one is revoked, the others stay good", "[fop]") {
    REQUIRE_THAT(refusal(kToken, kShown, {.generation_min = 6}), ContainsSubstring("generation"));
    REQUIRE(checker({.generation_min = 5}).check(kIssuer.sign(kToken), kShown).has_value());

    const TokenChecker::Options revoked{
        .revoked = {counting_bytes<16>(0x90), kToken.id, counting_bytes<16>(0x01)}};
    REQUIRE_THAT(refusal(kToken, kShown, revoked), ContainsSubstring("is revoked"));
    const auto another = changed([](Token& t) { t.id = counting_bytes<16>(0x51); });
    REQUIRE(checker(revoked).check(kIssuer.sign(another), kShown).has_value());
}

TEST_CASE("fop token: a bound one is good for its principal only", "[fop]") {
    REQUIRE_THAT(refusal(kToken, {.now = kInTime, .principal = "bob"}),
                 ContainsSubstring("another principal"));
    REQUIRE_THAT(refusal(kToken, {.now = kInTime}), ContainsSubstring("another principal"));

    const auto bearer = kIssuer.sign(changed([](Token& t) { t.principal.clear(); }));
    REQUIRE(checker().check(bearer, {.now = kInTime}).has_value());
    REQUIRE(checker().check(bearer, {.now = kInTime, .principal = "bob"}).has_value());
}

TEST_CASE("fop token: it names an object by its fid, or every one", "[fop]") {
    const Fid fid{.high = 0x1011121314151617, .low = 0x18191a1b1c1d1e1f};
    REQUIRE(token_object(fid) == counting_bytes<16>(0x10));
    REQUIRE(fid_of(counting_bytes<16>(0x10)) == fid);
    REQUIRE_FALSE(fid_of(TokenObject{}).has_value());
}

TEST_CASE("fop token: its text is read back, and what is no text of one is refused", "[fop]") {
    const auto bytes = kIssuer.sign(kToken);
    const std::string text = token_to_text(bytes);

    REQUIRE(text.starts_with("AQADAFBRUlNUVVZXWFlaW1xdXl8QERITFBUWFxgZGhscHR4fANJJawAAAAAF"));
    REQUIRE(text.find_first_of("+/=\n") == std::string::npos);
    REQUIRE(parse_token_text(text).value() == bytes);
    REQUIRE(parse_token_text(" " + text + "\n").value() == bytes);
    for (const std::string& bad :
         {std::string(), std::string(" \n"), text + "=", text.substr(0, 10) + " " + text.substr(10),
          "+" + text.substr(1), text.substr(0, 41), std::string("AB"), std::string(345, 'A')}) {
        CAPTURE(bad);
        REQUIRE(parse_token_text(bad).error().code == Errc::kInvalid);
    }
}

TEST_CASE("fop token: no character but the digits of base64url is taken for one", "[fop]") {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int c = 0; c < 256; ++c) {
        std::string text(8, 'A');
        text[3] = static_cast<char>(c);
        CAPTURE(c);
        REQUIRE(parse_token_text(text).has_value() ==
                (digits.find(static_cast<char>(c)) != std::string::npos));
    }
}

TEST_CASE("fop token: it can be shown without its issuer's key", "[fop]") {
    auto bytes = kIssuer.sign(kToken);
    bytes.back() ^= std::byte{1};

    REQUIRE(read_unverified(bytes).value() == kToken);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        REQUIRE(read_unverified(std::span(bytes).first(size)).error().code == Errc::kInvalid);
    }
}

TEST_CASE("fop token: the issuer's public half has a text form", "[fop]") {
    const std::string text = to_text(kIssuer.public_half());

    REQUIRE(parse_issuer_public(text + "\n").value() == kIssuer.public_half());
    REQUIRE(parse_issuer_public(text.substr(2)).error().code == Errc::kInvalid);
}

}  // namespace fopd::fop::token_test

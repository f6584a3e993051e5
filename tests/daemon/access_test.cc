// Goal: what a locality asks about tokens is answered as the files of `auth` say.
// Method: files as texts, tokens signed here, a clock that is told.

#include "daemon/access.h"

#include <string>

#include "fop/hex.h"
#include "tests/catch.h"
#include "tests/daemon/fake_clock.h"

using namespace fopd;
using namespace fopd::daemon;

namespace {

constexpr std::int64_t kNowSeconds = FakeClock::kStartUnixNs / 1'000'000'000;

fop::Issuer issuer(std::uint8_t first = 1) {
    fop::Key key;
    for (std::byte& byte : key.writable()) byte = std::byte{first};
    return fop::Issuer(key);
}

AccessPtr access_with(const std::string& revoked) {
    auto made = make_access({.principals_file = "principals.yaml",
                             .principals = "principals: []\nrevoked: " + revoked + "\n",
                             .peer_keys = {},
                             .issuer = issuer().public_half()});
    REQUIRE(made.has_value());
    return *made;
}

fop::Token good_token() {
    return {
        .id = {std::byte{7}}, .rights = fop::kRead, .not_after = kNowSeconds + 60, .generation = 3};
}

// Why it lends nothing; empty: it does.
std::string fault(AccessTokens& tokens, std::span<const std::byte> token) {
    const auto checked = tokens.check(token, Instant{});
    if (checked) return {};
    CHECK(checked.error().code == Errc::kDenied);
    return checked.error().context;
}

}  // namespace

TEST_CASE("access: principals that were added, removed or changed are named without secrets",
          "[daemon]") {
    const auto with = [](const std::string& principals) {
        auto made = make_access({.principals_file = "principals.yaml",
                                 .principals = "principals: [" + principals + "]\n",
                                 .peer_keys = {},
                                 .issuer = std::nullopt});
        REQUIRE(made.has_value());
        return *made;
    };
    const std::string key(64, 'a');
    const std::string other(64, 'b');
    const auto named = [](const std::string& name, const std::string& of_key,
                          const std::string& more = "rights: [read]") {
        return "{ name: " + name + ", key: " + of_key + ", " + more + " }";
    };
    const AccessPtr nobody = with("");
    const AccessPtr ann = with(named("ann", key));
    CHECK(changed_principals(*ann, *with(named("ann", key))).empty());

    const auto added = changed_principals(*nobody, *ann);
    REQUIRE(added.size() == 1);
    CHECK(added[0].path == "auth.principals.ann");
    CHECK(added[0].old_value.empty());
    CHECK(added[0].new_value.starts_with("rights=read keys="));
    CHECK(added[0].new_value.find("aaaaaaaa") == std::string::npos);

    const auto removed = changed_principals(*ann, *nobody);
    REQUIRE(removed.size() == 1);
    CHECK(removed[0].old_value == added[0].new_value);
    CHECK(removed[0].new_value.empty());

    const auto with_other_key = changed_principals(*ann, *with(named("ann", other)));
    REQUIRE(with_other_key.size() == 1);
    CHECK(with_other_key[0].old_value != with_other_key[0].new_value);

    const auto more = changed_principals(
        *ann, *with(named("ann", key,
                          "rights: [read, write], groups: [staff], delegate: true, "
                          "quotas: [{ pool: fast, bytes: 1GiB, objects: 10 }]")));
    REQUIRE(more.size() == 1);
    CHECK(more[0].new_value.starts_with("rights=read,write groups=staff delegate=true keys="));
    CHECK(more[0].new_value.ends_with(" quota.fast=1GiB,10"));

    std::string many;
    for (std::size_t i = 0; i < kPrincipalChangesMax + 5; ++i) {
        if (i > 0) many += ", ";
        std::string own = std::to_string(1000 + i);
        own += std::string(64 - own.size(), 'c');
        many += named("p" + std::to_string(i), own);
    }
    const auto all = changed_principals(*nobody, *with(many));
    REQUIRE(all.size() == kPrincipalChangesMax + 1);
    CHECK(all.back().new_value == "5 more have changed");
}

TEST_CASE("access: classes have the same key wherever the peer key is the same", "[daemon]") {
    const auto class_key = [](std::vector<std::uint8_t> firsts) {
        std::vector<fop::Key> keys(firsts.size());
        for (std::size_t i = 0; i < firsts.size(); ++i)
            for (std::byte& byte : keys[i].writable()) byte = std::byte{firsts[i]};
        auto made = make_access({.principals_file = "principals.yaml",
                                 .principals = "principals: []\n",
                                 .peer_keys = std::move(keys),
                                 .issuer = std::nullopt});
        REQUIRE(made.has_value());
        return (*made)->class_key;
    };
    CHECK_FALSE(class_key({}).has_value());
    REQUIRE(class_key({1}).has_value());
    CHECK(class_key({1}) == class_key({1}));
    CHECK_FALSE(class_key({1}) == class_key({2}));
    // Former keys only let peers in.
    CHECK(class_key({1, 2}) == class_key({1}));
    // It tells nothing about the peer key.
    CHECK(class_key({1})->first != 0x0101010101010101);
}

TEST_CASE("access: tokens that were revoked are named for the audit trail", "[daemon]") {
    const auto with = [](const std::string& revoked) {
        auto made = make_access({.principals_file = "principals.yaml",
                                 .principals = "principals: []\nrevoked: " + revoked + "\n",
                                 .peer_keys = {},
                                 .issuer = std::nullopt});
        REQUIRE(made.has_value());
        return *made;
    };
    const std::string first(32, 'a');
    const std::string second(32, '1');
    const AccessPtr one = with("{ tokens: [" + first + "] }");
    const AccessPtr both = with("{ tokens: [" + first + ", " + second + "] }");

    const auto revoked = changed_principals(*one, *both);
    REQUIRE(revoked.size() == 1);
    CHECK(revoked[0].path == "auth.revoked.tokens");
    CHECK(revoked[0].old_value.empty());
    CHECK(revoked[0].new_value == second);

    const auto valid_again = changed_principals(*both, *with("{ generation: 3 }"));
    REQUIRE(valid_again.size() == 3);
    CHECK(valid_again[0].old_value == second);
    CHECK(valid_again[1].old_value == first);
    CHECK(valid_again[2].path == "auth.revoked.generation");
    CHECK(valid_again[2].old_value == "0");
    CHECK(valid_again[2].new_value == "3");
}

TEST_CASE("access tokens: a token grants the signed rights until it expires", "[daemon]") {
    const FakeClock clock;
    AccessTokens tokens(clock, access_with("{}"));
    fop::Token token = good_token();
    token.principal = "ann";
    token.pool = "fast";
    token.object = fop::token_object({.high = 0x0003'0000'0000'0001, .low = 0x2a});

    const auto grant = tokens.check(issuer().sign(token), Instant(5s));

    REQUIRE(grant.has_value());
    CHECK(grant->rights == fop::kRead);
    CHECK(grant->principal == "ann");
    CHECK(grant->pool == "fast");
    CHECK(grant->object == fop::Fid{.high = 0x0003'0000'0000'0001, .low = 0x2a});
    const Instant end = grant->expires_at;
    CHECK(end > Instant(5s + 60s));
    CHECK(end <= Instant(5s + 61s));
}

TEST_CASE("access tokens: a refused token has a reason", "[daemon]") {
    FakeClock clock;
    AccessTokens tokens(clock, access_with("{}"));
    const auto token = issuer().sign(good_token());
    REQUIRE(fault(tokens, token).empty());

    for (std::size_t at = 0; at < token.size(); ++at) {
        auto changed = token;
        changed[at] ^= std::byte{1};
        CAPTURE(at);
        CHECK(fault(tokens, changed) == "the token is not signed by the issuer");
    }
    CHECK(fault(tokens, issuer(2).sign(good_token())) == "the token is not signed by the issuer");

    tokens.replace(access_with("{ tokens: [07" + std::string(30, '0') + "] }"));
    CHECK(fault(tokens, token) == "the token is revoked");
    tokens.replace(access_with("{ generation: 4 }"));
    CHECK(fault(tokens, token) == "the token is of a revoked generation");
    tokens.replace(access_with("{ generation: 3 }"));
    CHECK(fault(tokens, token).empty());

    clock.advance(62s);
    CHECK(fault(tokens, token) == "the token has expired");
}

TEST_CASE("access tokens: without an issuer every token is refused", "[daemon]") {
    const FakeClock clock;
    auto made = make_access(
        {.principals_file = "p", .principals = "principals: []\n", .peer_keys = {}, .issuer = {}});
    REQUIRE(made.has_value());
    AccessTokens tokens(clock, *made);
    CHECK(fault(tokens, issuer().sign(good_token())) ==
          "the server accepts no tokens: its configuration has no auth.issuer_public");
}

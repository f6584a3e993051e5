#include "fop/principal.h"

#include <string>

#include "tests/catch.h"
#include "tests/fop/example_bytes.h"

namespace fopd::fop {
namespace {

Key key(std::uint8_t first) {
    return Key(counting_bytes<32>(first));
}

std::string problem(KeyRing::Contents contents) {
    const auto ring = KeyRing::make(std::move(contents));
    return ring ? "" : ring.error();
}

}  // namespace

TEST_CASE("fop principal: each of its keys finds it", "[fop]") {
    const auto ring = KeyRing::make({.principals = {{.name = "ann",
                                                     .keys = {key(1), key(2)},
                                                     .rights = kRead,
                                                     .groups = {"staff"},
                                                     .delegation = Delegation::kAllowed}}});

    for (const Key& one : {key(1), key(2)}) {
        const auto found = ring->find(AuthKind::kPrincipal, key_id(one));
        REQUIRE(found.has_value());
        REQUIRE(found->key == one);
        REQUIRE(found->identity == Identity{.kind = AuthKind::kPrincipal,
                                            .name = "ann",
                                            .user = "ann",
                                            .groups = {"staff"},
                                            .rights = kRead,
                                            .key_id = key_id(one)});
        REQUIRE(found->delegation == Delegation::kAllowed);
    }
    REQUIRE_FALSE(ring->find(AuthKind::kPrincipal, key_id(key(3))).has_value());
}

TEST_CASE("fop principal: a principal's key opens no peer's door, nor the other way round",
          "[fop]") {
    const auto ring =
        KeyRing::make({.principals = {{.name = "ann", .keys = {key(1)}}}, .peer_keys = {key(2)}});

    REQUIRE(ring->find(AuthKind::kPeer, key_id(key(2))).has_value());
    REQUIRE_FALSE(ring->find(AuthKind::kPeer, key_id(key(1))).has_value());
    REQUIRE_FALSE(ring->find(AuthKind::kPrincipal, key_id(key(2))).has_value());
}

TEST_CASE("fop principal: invalid key rings are refused with a reason", "[fop]") {
    REQUIRE_THAT(problem({.principals = {{.name = "", .keys = {key(1)}}}}),
                 ContainsSubstring("no name"));
    REQUIRE_THAT(problem({.principals = {{.name = "a\nb", .keys = {key(1)}}}}),
                 ContainsSubstring("plain text"));
    REQUIRE_THAT(problem({.principals = {{.name = std::string(65, 'a'), .keys = {key(1)}}}}),
                 ContainsSubstring("64 bytes"));
    for (const char* const name : {"other", "peers", "unauthenticated"}) {
        REQUIRE(problem({.principals = {{.name = name, .keys = {key(1)}}}}) ==
                "no principal may be called " + std::string(name) +
                    ": reports use this name for other clients");
    }
    REQUIRE(problem({.principals = {{.name = "others", .keys = {key(1)}}}}).empty());
    REQUIRE_THAT(problem({.principals = {{.name = "ann"}}}), ContainsSubstring("ann has no key"));
    REQUIRE_THAT(problem({.principals = {{.name = "ann", .keys = {key(1)}},
                                         {.name = "ann", .keys = {key(2)}}}}),
                 ContainsSubstring("two principals ann"));
    REQUIRE_THAT(problem({.principals = {{.name = "ann", .keys = {key(1)}},
                                         {.name = "bob", .keys = {key(1)}}}}),
                 ContainsSubstring("bob is there twice"));
    REQUIRE_THAT(
        problem({.principals = {{.name = "ann", .keys = {key(1)}}}, .peer_keys = {key(1)}}),
        ContainsSubstring("peers is there twice"));
    REQUIRE_THAT(problem({.principals = {{.name = "ann", .keys = {key(1)}, .groups = {"\xff"}}}}),
                 ContainsSubstring("group of principal ann"));
    REQUIRE(problem({}).empty());
}

}  // namespace fopd::fop

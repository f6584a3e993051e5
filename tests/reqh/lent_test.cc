// Goal: with an object a token lends what it says and nothing else, whoever owns the object.
// Method: alice's objects in a node with disks; bob asks for them, with and without tokens.

#include "reqh/lent.h"

#include <string>

#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

using fop::Status;

constexpr std::string_view kLentPool = "fast";
constexpr fop::Rights kAllButAdmin = fop::kRead | fop::kWrite | fop::kCreate | fop::kDelete;

// Alice has two objects, which are for nobody else.
struct LendingNode {
    LendingNode() {
        node.write(mine, 0, pattern(objects::kBlock, 1));
        node.write(other, 0, pattern(objects::kBlock, 2));
    }

    // What bob is told, whose own right this is, and who has this token.
    FakeFop& by_bob(FopSpec spec, std::string token, fop::Rights rights) {
        spec.principal = "bob";
        spec.rights = rights;
        spec.token = std::move(token);
        return node.call(std::move(spec));
    }
    Status status(FopSpec spec, std::string token, fop::Rights rights = fop::kNoRights) {
        return by_bob(std::move(spec), std::move(token), rights).status();
    }
    std::string words(FopSpec spec, std::string token, fop::Rights rights = fop::kNoRights) {
        const FakeFop& fop = by_bob(std::move(spec), std::move(token), rights);
        REQUIRE(fop.status() == Status::kDenied);
        return fop.answer->words;
    }

    StoreStage node;
    const fop::Fid mine = node.create("mine");
    const fop::Fid other = node.create("other");
};

FopSpec stat_of(fop::Fid fid) {
    return {.type = type_of("stat"), .body = fop::Stat{.fid = fid}};
}
FopSpec lookup_of(std::string_view name) {
    return {.type = type_of("lookup"), .body = fop::Lookup{.name = name}};
}
FopSpec delete_of(fop::Fid fid) {
    return {.type = type_of("delete"), .body = fop::Delete{.fid = fid}};
}
FopSpec create_of(std::string_view name, std::string_view group = {}) {
    return {.type = type_of("create"),
            .body = fop::Create{.name = name, .group = group, .slot = kFirstSlot, .mode = 0640}};
}
FopSpec rename_of(fop::Fid fid, std::string_view name) {
    return {.type = type_of("rename"), .body = fop::Rename{.fid = fid, .name = name}};
}
FopSpec list_all() {
    return {.type = type_of("list"), .body = fop::ListObjects{}};
}
FopSpec mode_of(fop::Fid fid, std::uint16_t mode) {
    return {
        .type = type_of("set_attributes"),
        .body = fop::SetAttributes{.fid = fid, .mode = mode, .which = fop::SetAttributes::kMode}};
}

}  // namespace

TEST_CASE("reqh token: it lends another owner's object", "[reqh]") {
    LendingNode f;
    const std::string token = token_for(fop::kRead, {}, f.mine);
    REQUIRE(f.status(stat_of(f.mine), "") == Status::kDenied);
    REQUIRE(f.status(stat_of(f.mine), "", fop::kRead | fop::kWrite) == Status::kDenied);

    CHECK(f.status(stat_of(f.mine), token) == Status::kDone);
    CHECK(f.status(lookup_of("mine"), token) == Status::kDone);
    CHECK(f.status(stat_of(f.mine), token_for(fop::kRead)) == Status::kDone);
    CHECK(f.status(stat_of(f.mine), token_for(fop::kRead, kLentPool)) == Status::kDone);
}

TEST_CASE("reqh token: it lends no other object, no other pool and no other right", "[reqh]") {
    LendingNode f;
    // Rights of one's own make no difference where the mode is in the way.
    const fop::Rights own = GENERATE(fop::kNoRights, kAllButAdmin);
    const std::string token = token_for(fop::kRead, {}, f.mine);
    CHECK(f.status(stat_of(f.other), token, own) == Status::kDenied);
    CHECK(f.status(lookup_of("other"), token, own) == Status::kDenied);
    CHECK(f.status(truncate(f.mine, 1), token, own) == Status::kDenied);
    CHECK(f.status(delete_of(f.mine), token_for(fop::kWrite, {}, f.mine), own) == Status::kDenied);
    CHECK(f.status(stat_of(f.mine), token_for(fop::kRead, "slow"), own) == Status::kDenied);
    CHECK(f.status(stat_of(f.mine), token_for(fop::kRead, "slow", f.mine), own) == Status::kDenied);
    CHECK(f.status(stat_of(f.mine), token_for(fop::kWrite, {}, f.mine), own) == Status::kDenied);
}

TEST_CASE("reqh token: each right is enough for what it is called", "[reqh]") {
    LendingNode f;
    CHECK(f.status(truncate(f.mine, 1), token_for(fop::kWrite, {}, f.mine)) == Status::kDone);
    CHECK(f.status(rename_of(f.mine, "new"), token_for(fop::kWrite, kLentPool)) == Status::kDone);
    CHECK(f.status(create_of("bob's"), token_for(fop::kCreate, kLentPool)) == Status::kDone);
    CHECK(f.status(list_all(), token_for(fop::kRead, kLentPool)) == Status::kDone);
    CHECK(f.status(delete_of(f.mine), token_for(fop::kDelete, {}, f.mine)) == Status::kDone);
}

TEST_CASE("reqh token: one for an object lends nothing of its pool", "[reqh]") {
    LendingNode f;
    const std::string token = token_for(fop::kAllRights, {}, f.mine);
    CHECK(f.status(list_all(), token) == Status::kDenied);
    CHECK(f.status(create_of("bob's"), token) == Status::kDenied);
    // Not even which names are free.
    CHECK(f.words(lookup_of("none"), token) == f.words(lookup_of("other"), token));
    CHECK(f.status(lookup_of("none"), token_for(fop::kRead, kLentPool)) == Status::kNotFound);
}

TEST_CASE("reqh token: changing an object's owner or mode needs a token with admin", "[reqh]") {
    LendingNode f;
    const fop::Rights own = GENERATE(fop::kNoRights, kAllButAdmin);
    CHECK(f.status(mode_of(f.mine, 0666), token_for(fop::kWrite, {}, f.mine), own) ==
          Status::kDenied);
    CHECK(f.status(mode_of(f.mine, 0666), token_for(fop::kWrite | fop::kAdmin, {}, f.other), own) ==
          Status::kDenied);
    CHECK(f.status(mode_of(f.mine, 0666), token_for(fop::kWrite | fop::kAdmin, {}, f.mine), own) ==
          Status::kDone);
    CHECK(f.node.stat(f.mine).mode == 0666);
}

TEST_CASE("reqh token: replacing an object needs a token for that object, too", "[reqh]") {
    LendingNode f;
    const fop::Rights own = fop::kCreate | fop::kWrite;
    CHECK(f.status(create_of("mine"), "", own) == Status::kDenied);
    CHECK(f.status(create_of("mine"), token_for(fop::kRead, kLentPool), own) == Status::kDenied);
    CHECK(f.status(create_of("mine"), token_for(fop::kCreate, kLentPool)) == Status::kDenied);
    CHECK(f.status(rename_of(f.other, "mine"), token_for(fop::kWrite, {}, f.other)) ==
          Status::kDenied);
    CHECK(f.status(rename_of(f.other, "mine"), token_for(fop::kWrite, kLentPool)) == Status::kDone);
}

TEST_CASE("reqh token: an object that is made with one is its maker's", "[reqh]") {
    LendingNode f;
    const std::string token = token_for(fop::kCreate, kLentPool);
    REQUIRE(f.status(create_of("bob's"), token) == Status::kDone);
    FopSpec look = lookup_of("bob's");
    const FakeFop& found = f.by_bob(look, "", fop::kRead);
    REQUIRE(found.status() == Status::kDone);
    CHECK(std::get<fop::LookupReply>(found.answer->body).attributes.owner == "bob");

    CHECK(f.status(create_of("crew's", "crew"), token) == Status::kDenied);
    CHECK(f.status(create_of("crew's", "crew"), token_for(fop::kCreate | fop::kAdmin, kLentPool)) ==
          Status::kDone);
}

TEST_CASE("reqh token: an invalid token takes no right away", "[reqh]") {
    LendingNode f;
    const std::string bad =
        GENERATE(std::string("made up"), std::string("mallory's"), token_for(fop::kRead, "slow"));
    REQUIRE(f.status(create_of("bob's"), bad, fop::kCreate) == Status::kDone);
    CHECK(f.status(lookup_of("bob's"), bad, fop::kRead) == Status::kDone);
}

TEST_CASE("reqh token: a denial says what is missing, and reveals nothing else", "[reqh]") {
    LendingNode f;
    const fop::Rights own = fop::kRead | fop::kWrite;
    const std::string read = token_for(fop::kRead, {}, f.mine);
    CHECK(f.words(truncate(f.mine, 1), "") == "may not write: your rights are none");
    CHECK(f.words(truncate(f.mine, 1), read, own) ==
          "may not write: mode 0600, owner alice; the token does not grant this right");
    // Whose it is, is for who may read it.
    CHECK(f.words(truncate(f.mine, 1), "", own) ==
          "may not write: the object's mode does not let you");
    CHECK(f.words(stat_of(f.other), read, own) ==
          "may not read: the object's mode does not let you; the token is for another object");
    CHECK(f.words(stat_of(f.other), read) ==
          "may not read: your rights are none; the token is for another object");
    CHECK(f.words(mode_of(f.mine, 0666), read, own) ==
          "may not change its owner, group or mode: mode 0600, owner alice; the token does not "
          "grant this right");
    CHECK(f.words(create_of("mine"), "", fop::kCreate) ==
          "may not replace the object that has the name: the object's mode does not let you");

    REQUIRE(f.node.call(mode_of(f.mine, 0644)).status() == Status::kDone);
    CHECK(f.words(truncate(f.mine, 1), "", own) == "may not write: mode 0644, owner alice");
}

}  // namespace fopd::reqh::testing

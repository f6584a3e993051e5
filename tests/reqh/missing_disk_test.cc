// Goal: nobody is told that an object is gone that may be on a disk which is missing.

#include <string>
#include <variant>
#include <vector>

#include "fop/listing.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

constexpr std::uint16_t kAway = kFirstSlot + 1;

FopSpec new_named(std::string_view name, bool no_replace = false) {
    return {.type = type_of("create"),
            .body = fop::Create{
                .name = name, .slot = kFirstSlot, .mode = 0600, .no_replace = no_replace}};
}
FopSpec question(std::string_view name) {
    return {.type = type_of("lookup"), .body = fop::Lookup{.name = name}};
}
FopSpec renaming(fop::Fid fid, std::string_view name, bool no_replace = false) {
    return {.type = type_of("rename"),
            .body = fop::Rename{.fid = fid, .name = name, .no_replace = no_replace}};
}
FopSpec taking_away(fop::Fid fid) {
    return {.type = type_of("delete"), .body = fop::Delete{.fid = fid}};
}
FopSpec a_look(fop::Fid fid) {
    return {.type = type_of("stat"), .body = fop::Stat{.fid = fid}};
}
FopSpec list_behind(std::string_view cursor = {}) {
    return {.type = type_of("list"), .body = fop::ListObjects{.cursor = cursor}};
}

fop::Fid owner_in(const FakeFop& fop) {
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::LookupReply>(fop.answer->body).attributes.fid;
}

// Two disks, of which the second goes with "away" on it; what was kept of names is lost, or not.
class TwoDisks : public StoreStage {
public:
    explicit TwoDisks(bool names_are_lost)
        : StoreStage({.localities = 2, .disks = 2}),
          here(create("here", kFirstSlot)),
          away(create("away", kAway)) {
        stop();
        take_away(1);
        if (names_are_lost) lose_names();
        start();
    }
    void come_back() {
        stop();
        bring_back(1);
        start();
    }
    void refuse(const FopSpec& spec) {
        FakeFop& fop = call(spec);
        INFO(fop.answer->words);
        CHECK(fop.status() == fop::Status::kMediumMissing);
        CHECK_THAT(std::string(fop.answer->words), ContainsSubstring("disk-1"));
    }

    const fop::Fid here;
    const fop::Fid away;
};

}  // namespace

TEST_CASE("reqh missing: a name that may be on a disk that is missing is not said to be nobody's",
          "[reqh]") {
    const bool names_are_lost = GENERATE(false, true);
    TwoDisks node(names_are_lost);
    node.refuse(question("away"));
    node.refuse(question("nothing"));
    node.refuse(a_look(node.away));
    node.refuse(taking_away(node.away));
    node.refuse(renaming(node.away, "other"));
    CHECK(owner_in(node.call(question("here"))) == node.here);
    CHECK(node.call(a_look(node.here)).status() == fop::Status::kDone);

    node.come_back();
    CHECK(owner_in(node.call(question("away"))) == node.away);
    CHECK(node.call(question("nothing")).status() == fop::Status::kNotFound);
}

TEST_CASE("reqh missing: a list shows what is there, and then that it may not be all", "[reqh]") {
    TwoDisks node(true);
    const FakeFop& first = node.call(list_behind());
    REQUIRE(first.status() == fop::Status::kDone);
    const auto& reply = std::get<fop::ListObjectsReply>(first.answer->body);
    CHECK_FALSE(reply.end);
    const auto entries = fop::read_list(first.answer->payload);
    REQUIRE(entries.has_value());
    REQUIRE(entries->size() == 1);
    CHECK(entries->front().name == "here");
    const std::string cursor(reply.cursor);
    node.refuse(list_behind(cursor));

    node.come_back();
    CHECK(std::get<fop::ListObjectsReply>(node.call(list_behind()).answer->body).end);
}

TEST_CASE("reqh missing: what is known to be on it is listed, and nobody is told its size",
          "[reqh]") {
    TwoDisks node(false);
    const auto entries = fop::read_list(node.call(list_behind()).answer->payload);
    REQUIRE(entries.has_value());
    REQUIRE(entries->size() == 2);
    CHECK(entries->front().name == "away");
    CHECK(entries->front().size_bytes == fop::kSizeUnknown);
    CHECK(entries->back().name == "here");
    CHECK(entries->back().size_bytes == 0);
}

TEST_CASE("reqh missing: who wants a name free does not get it beside one that may be there",
          "[reqh]") {
    TwoDisks node(true);
    node.refuse(new_named("away", true));
    node.refuse(renaming(node.here, "away", true));
    CHECK(owner_in(node.call(question("here"))) == node.here);

    node.come_back();
    CHECK(owner_in(node.call(question("away"))) == node.away);
    CHECK(node.call(new_named("away", true)).status() == fop::Status::kExists);
}

}  // namespace fopd::reqh::testing

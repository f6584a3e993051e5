// Goal: nobody is told that an object is gone that may be on a disk which is missing, and when the
// disk is back there is one object of a name, and somebody heard of the other.

#include <array>
#include <string>
#include <variant>
#include <vector>

#include "fop/listing.h"
#include "fop/name.h"
#include "objects/fids.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

constexpr std::uint16_t kAway = kFirstSlot + 1;
const Bytes kContent = bytes_of("what was acknowledged");

FopSpec new_named(std::string_view name, bool no_replace = false) {
    return {.type = type_of("create"),
            .body = fop::Create{
                .name = name, .slot = kFirstSlot, .mode = 0600, .no_replace = no_replace}};
}
FopSpec sent_by(std::string principal, FopSpec spec) {
    spec.principal = std::move(principal);
    return spec;
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
FopSpec gift(fop::Fid fid, std::string_view owner) {
    return {.type = type_of("set_attributes"),
            .body = fop::SetAttributes{
                .fid = fid, .owner = owner, .which = fop::SetAttributes::kOwner}};
}
FopSpec mode_change(fop::Fid fid, std::uint16_t mode) {
    return {
        .type = type_of("set_attributes"),
        .body = fop::SetAttributes{.fid = fid, .mode = mode, .which = fop::SetAttributes::kMode}};
}
FopSpec list_behind(std::string_view cursor = {}) {
    return {.type = type_of("list"), .body = fop::ListObjects{.cursor = cursor}};
}

fop::Fid owner_in(const FakeFop& fop) {
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::LookupReply>(fop.answer->body).attributes.fid;
}
fop::Fid made_in(const FakeFop& fop) {
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::CreateReply>(fop.answer->body).fid;
}

std::string own_name_of(fop::Fid fid, const std::string& name) {
    return name + "." + objects::format_fid(objects::store_fid(fid));
}

// Two disks, of which the second goes with "away" on it; what was kept of names is lost, or not.
class TwoDisks : public StoreStage {
public:
    explicit TwoDisks(bool names_are_lost)
        : StoreStage({.localities = 2, .disks = 2}),
          here(create("here", kFirstSlot)),
          away(create("away", kAway)) {
        write(away, 0, kContent);
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

TEST_CASE("reqh missing: a name that may be on a missing disk is not reported as not found",
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

TEST_CASE("reqh missing: a list shows the known names, then that it may be incomplete", "[reqh]") {
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

TEST_CASE("reqh missing: objects known to be on it are listed without their size", "[reqh]") {
    TwoDisks node(false);
    const auto entries = fop::read_list(node.call(list_behind()).answer->payload);
    REQUIRE(entries.has_value());
    REQUIRE(entries->size() == 2);
    CHECK(entries->front().name == "away");
    CHECK(entries->front().size_bytes == fop::kSizeUnknown);
    CHECK(entries->back().name == "here");
    CHECK(entries->back().size_bytes == 0);
}

TEST_CASE("reqh missing: a create that needs the name free fails while the name may exist",
          "[reqh]") {
    TwoDisks node(true);
    node.refuse(new_named("away", true));
    node.refuse(renaming(node.here, "away", true));
    CHECK(owner_in(node.call(question("here"))) == node.here);

    node.come_back();
    CHECK(owner_in(node.call(question("away"))) == node.away);
    CHECK(node.call(new_named("away", true)).status() == fop::Status::kExists);
}

TEST_CASE("reqh missing: a name that was given again is the later one's when the disk is back",
          "[reqh]") {
    const bool by_rename = GENERATE(false, true);
    TwoDisks node(true);
    fop::Fid later = node.here;
    if (by_rename) {
        REQUIRE(node.call(renaming(node.here, "away")).status() == fop::Status::kDone);
    } else {
        later = made_in(node.call(new_named("away")));
    }
    CHECK(owner_in(node.call(question("away"))) == later);

    node.come_back();
    CHECK(owner_in(node.call(question("away"))) == later);
    node.run_for(1s);
    CHECK(node.call(a_look(node.away)).status() == fop::Status::kNotFound);
    REQUIRE(node.event_count("store.replaced_late") == 1);
    const auto* const event = node.last_event("store.replaced_late", 1);
    REQUIRE(event != nullptr);
    CHECK(event->texts.at("device") == node.volume(1).device_name());
    CHECK(event->texts.at("name") == "away");
    node.restart();
    CHECK(owner_in(node.call(question("away"))) == later);
    CHECK(node.event_count("store.replaced_late") == 0);
}

TEST_CASE("reqh missing: an object that the new owner had no right to replace gets another name",
          "[reqh]") {
    const bool by_rename = GENERATE(false, true);
    TwoDisks node(true);
    fop::Fid later = node.here;
    if (by_rename) {
        REQUIRE(node.call(gift(node.here, "bob")).status() == fop::Status::kDone);
        REQUIRE(node.call(sent_by("bob", renaming(node.here, "away"))).status() ==
                fop::Status::kDone);
    } else {
        later = made_in(node.call(sent_by("bob", new_named("away"))));
    }

    node.come_back();
    node.run_for(1s);
    CHECK(owner_in(node.call(question("away"))) == later);
    const std::string own = own_name_of(node.away, "away");
    CHECK(owner_in(node.call(question(own))) == node.away);
    CHECK(node.read(node.away, 0, kContent.size()) == kContent);
    CHECK(node.stat(node.away).owner == "alice");
    REQUIRE(node.event_count("store.renamed_late") == 1);
    const auto* const event = node.last_event("store.renamed_late", 1);
    REQUIRE(event != nullptr);
    CHECK(event->texts.at("device") == node.volume(1).device_name());
    CHECK(event->texts.at("name") == own);
    CHECK(node.event_count("store.replaced_late") == 0);

    node.restart();
    node.run_for(1s);
    CHECK(node.event_count("store.renamed_late") == 0);
    CHECK(node.call(sent_by("bob", taking_away(later))).status() == fop::Status::kDone);
    CHECK(node.call(question("away")).status() == fop::Status::kNotFound);
    CHECK(node.call(sent_by("alice", renaming(node.away, "away"))).status() == fop::Status::kDone);
    CHECK(owner_in(node.call(question("away"))) == node.away);
}

TEST_CASE("reqh missing: a name of its own is no longer than a name may be", "[reqh]") {
    std::string name;
    while (name.size() + 2 <= fop::kObjectNameBytesMax) name += "\u00e9";
    StoreStage node({.localities = 2, .disks = 2});
    const fop::Fid away = node.create(name, kAway);
    node.stop();
    node.take_away(1);
    node.lose_names();
    node.start();
    const fop::Fid later = made_in(node.call(sent_by("bob", new_named(name))));
    node.stop();
    node.bring_back(1);
    node.start();
    node.run_for(1s);
    CHECK(owner_in(node.call(question(name))) == later);
    // 33 bytes make place, and one that would be half a character.
    CHECK(owner_in(node.call(question(own_name_of(away, name.substr(0, 446))))) == away);
}

TEST_CASE("reqh missing: what anybody may replace is replaced", "[reqh]") {
    StoreStage node({.localities = 2, .disks = 2});
    const fop::Fid away = node.create("away", kAway);
    REQUIRE(node.call(mode_change(away, 0666)).status() == fop::Status::kDone);
    node.stop();
    node.take_away(1);
    node.lose_names();
    node.start();
    const fop::Fid later = made_in(node.call(sent_by("bob", new_named("away"))));
    node.stop();
    node.bring_back(1);
    node.start();
    node.run_for(1s);
    CHECK(owner_in(node.call(question("away"))) == later);
    CHECK(node.call(a_look(away)).status() == fop::Status::kNotFound);
    CHECK(node.event_count("store.replaced_late") == 1);
}

TEST_CASE("reqh missing: nothing is removed for one that is on a missing disk itself", "[reqh]") {
    TwoDisks node(true);
    const fop::Fid later = made_in(node.call(sent_by("bob", new_named("away"))));
    node.stop();
    node.bring_back(1);
    node.take_away(0);
    node.start();
    node.run_for(1s);
    CHECK(node.read(node.away, 0, kContent.size()) == kContent);
    CHECK(node.call(question("away")).status() == fop::Status::kMediumMissing);

    node.stop();
    node.bring_back(0);
    node.start();
    node.run_for(1s);
    CHECK(owner_in(node.call(question("away"))) == later);
    CHECK(owner_in(node.call(question(own_name_of(node.away, "away")))) == node.away);
}

TEST_CASE("reqh missing: what was on a disk that was written off is gone, and said to be lost",
          "[reqh]") {
    TwoDisks node(true);
    const fop::Receipt asked{.incarnation = 1, .seq = 1, .slot = kAway};
    const std::array receipts{asked};
    const FopSpec sync{.type = type_of("sync"), .body = fop::Sync{.receipts = receipts}};
    node.refuse(sync);
    node.stop();
    node.write_off(1);
    node.start();

    for (const FopSpec& spec : {question("away"), question("nothing"), a_look(node.away),
                                taking_away(node.away), renaming(node.away, "other")}) {
        CHECK(node.call(spec).status() == fop::Status::kNotFound);
    }
    CHECK(std::get<fop::ListObjectsReply>(node.call(list_behind()).answer->body).end);
    CHECK(owner_in(node.call(question("here"))) == node.here);
    const FakeFop& synced = node.call(sync);
    CHECK(synced.status() == fop::Status::kLost);
    const auto& reply = std::get<fop::SyncReply>(synced.answer->body);
    REQUIRE(reply.receipts.size() == 1);
    CHECK(reply.receipts[0].slot == kAway);
    CHECK(reply.receipts[0].incarnation == 0);
    // Who asks for all is told of what there is.
    const FopSpec all{.type = type_of("sync"), .body = fop::Sync{}};
    CHECK(node.call(all).status() == fop::Status::kDone);
    const FopSpec there{.type = type_of("create"),
                        .body = fop::Create{.name = "new", .slot = kAway, .mode = 0600}};
    CHECK(node.call(there).status() == fop::Status::kMediumMissing);
    made_in(node.call(new_named("away", true)));
}

TEST_CASE("reqh missing: an object that was replaced knowingly is removed", "[reqh]") {
    StoreStage node({.localities = 2, .disks = 2});
    const fop::Fid first = node.create("name", kAway);
    const fop::Fid second = made_in(node.call(sent_by("bob", new_named("name"))));
    node.run_for(1s);
    CHECK(node.call(a_look(first)).status() == fop::Status::kNotFound);
    CHECK(owner_in(node.call(question("name"))) == second);
    CHECK(node.event_count("store.replaced_late") == 0);
    CHECK(node.event_count("store.renamed_late") == 0);
}

}  // namespace fopd::reqh::testing

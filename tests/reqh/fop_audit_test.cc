// Goal: the audit trail has each denied fop, or its number, and each change of an object if that is
// wanted. Method: a request handler in the simulated world with fops of a caller that has no
// rights.

#include "reqh/fop_audit.h"

#include <string>

#include "reqh/request_handler.h"
#include "tests/reqh/fake_fop.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

std::vector<KeptEvents::Event> events_named(const KeptEvents& events, std::string_view name) {
    std::vector<KeptEvents::Event> found;
    for (const KeptEvents::Event& each : events.events) {
        if (each.name == name) found.push_back(each);
    }
    return found;
}

FopSpec rename_without_rights() {
    return {.type = type_of("rename"),
            .body = fop::Rename{.fid = {.high = 1, .low = 2}, .from = "old", .name = "new"},
            .address = "mem://client:7",
            .rights = fop::kRead,
            .principal = "mallory"};
}

}  // namespace

TEST_CASE("reqh audit: a denied fop is written with its caller, its object and the reason",
          "[reqh]") {
    HandlerWorld node;
    const FakeFop& fop = node.send(rename_without_rights());
    node.settle();
    REQUIRE(fop.status() == fop::Status::kDenied);
    const auto denied = events_named(node.events, "audit.denied");
    REQUIRE(denied.size() == 1);
    const auto& texts = denied.front().texts;
    CHECK(texts.at("op") == "rename");
    CHECK(texts.at("principal") == "mallory");
    CHECK(texts.at("peer") == "mem://client:7");
    CHECK(texts.at("object") == "old");
    CHECK(texts.at("new_name") == "new");
    CHECK(texts.at("fid") == "00000000000000010000000000000002");
    CHECK(texts.at("reason") == fop.answer->words);
    CHECK_FALSE(texts.at("fop").empty());
}

TEST_CASE("reqh audit: a client that is denied all the time does not fill the trail", "[reqh]") {
    HandlerWorld node;
    for (int i = 0; i < 1000; ++i) node.send(rename_without_rights());
    FopSpec other = rename_without_rights();
    other.principal = "eve";
    node.send(other);
    node.world.run_for(FopAudit::kInterval + 1ms);
    const auto denied = events_named(node.events, "audit.denied");
    REQUIRE(denied.size() == FopAudit::kDenialsMax + 1);
    CHECK(denied.back().texts.at("principal") == "eve");
    const auto more = events_named(node.events, "audit.denied_more");
    REQUIRE(more.size() == 1);
    CHECK(more.front().texts.at("principal") == "principal mallory");
    CHECK(more.front().numbers.at("count") == 1000 - FopAudit::kDenialsMax);

    // The next second is a new one.
    node.send(rename_without_rights());
    node.settle();
    CHECK(events_named(node.events, "audit.denied").size() == FopAudit::kDenialsMax + 2);
}

TEST_CASE("reqh audit: fops that are allowed are not written", "[reqh]") {
    HandlerWorld node;
    node.handler.set_limits({.max_foms = 8, .audit_changes = true});
    node.send(ping());
    node.send(echo("hello"));
    node.settle();
    CHECK(node.events.events.empty());
}

TEST_CASE("reqh audit: changes of objects are written if that is wanted", "[reqh]") {
    StoreStage node;
    const fop::Fid before = node.create("before");
    node.write(before, 0, pattern(objects::kBlock, 1));
    CHECK(node.event_count("audit.changed") == 0);

    node.handler().set_limits({.audit_changes = true});
    const fop::Fid fid = node.create("now");
    node.write(fid, 0, pattern(objects::kBlock, 1));
    node.read(fid, 0, objects::kBlock);
    node.stat(fid);
    CHECK(node.event_count("audit.changed") == 2);
}

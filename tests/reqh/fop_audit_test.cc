// Goal: the audit trail has each denied fop, or its number, and each change of an object if that is
// wanted. Method: a request handler in the simulated world with fops of a caller that has no
// rights.

#include "reqh/fop_audit.h"

#include <string>
#include <utility>

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

TEST_CASE("reqh audit: each type of fop that needs the right admin is administration", "[reqh]") {
    HandlerWorld node;
    std::size_t count = 0;
    for (std::size_t i = 0; i < fop::kFopTypes.size(); ++i) {
        const fop::FopType& type = fop::kFopTypes[i];
        const bool only_measures = type.name == "echo" || type.name == "bulk_echo";
        if (!type.rights.cover(fop::kAdmin) || only_measures) continue;
        CAPTURE(type.name);
        FopSpec spec{.type = type.number, .pool = "cold"};
        spec.body = fop::ImportMedia{.name = "TAPE01L9"};
        if (type.name == "format_medium") spec.body = fop::FormatMedium{.name = "TAPE01L9"};
        if (type.name == "load_medium") {
            spec.body = fop::LoadMedium{.name = "TAPE01L9", .drive = "d0"};
        }
        if (type.name == "unload_drive") spec.body = fop::UnloadDrive{.drive = "d0"};
        if (type.name == "set_drive") spec.body = fop::SetDrive{.drive = "d0", .down = true};
        if (type.name == "export_medium") spec.body = fop::ExportMedium{.name = "TAPE01L9"};
        if (type.name == "medium_work") {
            spec.body =
                fop::MediumWork{.name = "TAPE01L9", .order = fop::MediumWork::Order::kBegin};
        }
        for (const fop::Rights rights : {fop::kRead, fop::kAllRights}) {
            spec.rights = rights;
            const FakeFop& fop = node.send(spec);
            node.settle();
            REQUIRE(fop.answer.has_value());
            const auto written = events_named(node.events, "audit.administration");
            REQUIRE(written.size() == ++count);
            const auto& texts = written.back().texts;
            CHECK(texts.at("verb") == type.name);
            CHECK(texts.at("principal") == "alice");
            CHECK(texts.at("peer") == "mem://client:1");
            CHECK(texts.at("parameters").find("pool=\"cold\"") != std::string::npos);
            CHECK(texts.at("result") == fop::to_string(fop.status()));
            CHECK(texts.at("reason") == fop.answer->words);
        }
    }
    CHECK(count >= 14);
    CHECK(events_named(node.events, "audit.administration").front().texts.at("parameters") ==
          "barcode=\"TAPE01L9\" pool=\"cold\"");
}

TEST_CASE("reqh audit: to ask how far work on a cartridge is, is no administration", "[reqh]") {
    HandlerWorld node;
    node.send({.type = type_of("medium_work"), .body = fop::MediumWork{.name = "TAPE01L9"}});
    node.settle();
    CHECK(events_named(node.events, "audit.administration").empty());
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

TEST_CASE("reqh audit: a change has the name of its object, though the fop has only the fid",
          "[reqh]") {
    StoreStage node;
    node.handler().set_limits({.audit_changes = true});
    const fop::Fid fid = node.create("photos/1");
    node.write(fid, 0, pattern(objects::kBlock, 1));
    const auto* written = node.last_event("audit.changed");
    REQUIRE(written != nullptr);
    CHECK(written->texts.at("op") == "write");
    CHECK(written->texts.at("object") == "photos/1");
    CHECK_FALSE(written->texts.contains("old"));

    // The next fop uses the same memory.
    node.create("other");
    CHECK(node.last_event("audit.changed")->texts.at("object") == "other");
    node.create();
    CHECK(node.last_event("audit.changed")->texts.at("object").empty());
}

TEST_CASE("reqh audit: a change of owner, group or mode has the old and the new ones", "[reqh]") {
    StoreStage node;
    node.handler().set_limits({.audit_changes = true});
    const fop::Fid fid = node.create("photos/1");
    const auto set = [&](const fop::SetAttributes& wish) {
        const FopSpec spec{.type = type_of("set_attributes"), .body = wish};
        REQUIRE(node.call(spec).status() == fop::Status::kDone);
        const auto* written = node.last_event("audit.changed");
        REQUIRE(written != nullptr);
        CHECK(written->texts.at("object") == "photos/1");
        return std::pair(written->texts.at("old"), written->texts.at("new"));
    };
    using fop::SetAttributes;
    set({.fid = fid,
         .group = "crew",
         .mode = 0640,
         .which = SetAttributes::kGroup | SetAttributes::kMode});
    CHECK(set({.fid = fid, .owner = "bob", .which = SetAttributes::kOwner}) ==
          std::pair<std::string, std::string>("owner=alice group=crew mode=0640",
                                              "owner=bob group=crew mode=0640"));
    CHECK(set({.fid = fid, .mode = 0600, .which = SetAttributes::kMode}) ==
          std::pair<std::string, std::string>("owner=bob group=crew mode=0640",
                                              "owner=bob group=crew mode=0600"));
}

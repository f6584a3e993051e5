// Goal: cartridges and drives are shown to clients and changed by administrators, and what the
// library says to that is told as it is.
// Method: as tape_fops_test.cc.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fop/listing.h"
#include "tests/catch.h"
#include "tests/reqh/tape_node.h"

namespace fopd::reqh::testing::tape_fops {

TEST_CASE("reqh tape: the copies of an object are listed with their cartridges", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const fop::Fid fid = tape.object_on_tape(1);
    const auto copies_of = [&](fop::Fid object, bool on_disk) {
        const FakeFop& fop = tape.call("copies", fop::Copies{.fid = object});
        REQUIRE(fop.status() == fop::Status::kDone);
        const auto entries = fop::read_copies(fop.answer->payload);
        REQUIRE(entries.has_value());
        const auto& reply = std::get<fop::CopiesReply>(fop.answer->body);
        CHECK(reply.total == entries->size());
        CHECK(reply.on_disk == on_disk);
        std::vector<std::string> found;
        for (const fop::CopyEntry& each : *entries) {
            CHECK(each.file == 1);
            CHECK(each.block == 100);
            CHECK(each.length == kBytes);
            CHECK(each.written_s == 1'800'000'000);
            found.push_back(std::string(each.cartridge) + " " + std::string(each.state));
        }
        return found;
    };
    // The node does not have the cartridge.
    CHECK(copies_of(fid, false) == std::vector<std::string>{"TAPE01 "});
    library::Cartridge& cartridge = tape.library->cartridges.emplace_back();
    cartridge = {.barcode = "TAPE01L9", .vsn = "TAPE01", .generation = 1};
    cartridge.state = library::CartridgeState::kSuspect;
    CHECK(copies_of(fid, false) == std::vector<std::string>{"TAPE01L9 suspect"});
    // What an earlier label had is not this cartridge's.
    cartridge.generation = 2;
    CHECK(copies_of(fid, false) == std::vector<std::string>{"TAPE01 "});
    CHECK(copies_of(tape.object(0), true).empty());

    FopSpec other{.type = type_of("copies"), .body = fop::Copies{.fid = fid}};
    other.principal = "bob";
    other.rights = fop::kRead;
    CHECK(stage.call(other).status() == fop::Status::kDenied);
}

TEST_CASE("reqh tape: cartridges are listed by barcode, as many as fit", "[reqh]") {
    TapeStage tape;
    constexpr std::size_t kCount = 300;
    for (std::size_t i = 0; i < kCount; ++i) {
        library::Cartridge& each = tape.library->cartridges.emplace_back();
        each.barcode = "T" + std::to_string(99999 - i) + "L9";
        each.state = library::CartridgeState::kSuspect;
        each.reason = "shorter than its catalogue";
    }
    tape.library->drive_rows = {
        {.name = "drive0", .serial = {}, .technology = "lto9", .barcode = "T99999L9"}};
    std::vector<std::string> barcodes;
    std::string cursor;
    for (bool is_end = false; !is_end;) {
        const FakeFop& fop = tape.call("media", fop::Media{.cursor = cursor});
        REQUIRE(fop.status() == fop::Status::kDone);
        const auto entries = fop::read_media(fop.answer->payload);
        REQUIRE(entries.has_value());
        REQUIRE_FALSE(entries->empty());
        for (const fop::MediumEntry& each : *entries) {
            barcodes.emplace_back(each.barcode);
            CHECK(each.state == "suspect");
            CHECK(each.drive == (each.barcode == "T99999L9" ? "drive0" : ""));
        }
        const auto& reply = std::get<fop::MediaReply>(fop.answer->body);
        cursor = std::string(reply.cursor);
        is_end = reply.end;
    }
    REQUIRE(barcodes.size() == kCount);
    CHECK(std::ranges::is_sorted(barcodes));
    // New ones are looked for at the beginning of a list.
    CHECK(tape.library->looks == 1);
}

TEST_CASE("reqh tape: a cartridge is listed with the bytes of the copies that objects have",
          "[reqh]") {
    TapeStage tape;
    tape.library->cartridges.push_back({.barcode = "TAPE01L9", .vsn = "TAPE01", .generation = 1});
    const auto bytes_of_it = [&tape] {
        const FakeFop& fop = tape.call("media", fop::Media{});
        REQUIRE(fop.status() == fop::Status::kDone);
        const auto entries = fop::read_media(fop.answer->payload);
        REQUIRE(entries.has_value());
        REQUIRE(entries->size() == 1);
        return std::array{entries->front().live_bytes, entries->front().dead_bytes};
    };
    CHECK(bytes_of_it() == std::array<std::uint64_t, 2>{0, 0});
    // On disks of both localities.
    const fop::Fid fid = tape.object_on_tape(0);
    tape.object_on_tape(1);
    CHECK(bytes_of_it() == std::array<std::uint64_t, 2>{2 * kBytes, 0});
    REQUIRE(tape.status_of("delete", fop::Delete{.fid = fid}) == fop::Status::kDone);
    CHECK(bytes_of_it() == std::array<std::uint64_t, 2>{kBytes, kBytes});

    // What an earlier label had is gone.
    tape.library->cartridges.front().generation = 2;
    CHECK(bytes_of_it() == std::array<std::uint64_t, 2>{0, 0});
}

TEST_CASE("reqh tape: while the library is not open that is said at once", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const fop::Fid fid = tape.object_on_tape(1, "one");
    REQUIRE(tape.status_of("stage", fop::Stage{.fid = fid}) == fop::Status::kDone);
    const std::array fids{fid};
    const std::vector<std::pair<std::string_view, fop::RequestBody>> all{
        {"media", fop::Media{}},
        {"recalls", fop::Recalls{}},
        {"recall_wait", fop::RecallWait{.fids = fids, .patience_ms = 1}},
        {"format_medium", fop::FormatMedium{.name = "TAPE01L9"}},
        {"load_medium", fop::LoadMedium{.name = "TAPE01L9", .drive = "d9"}},
        {"unload_drive", fop::UnloadDrive{.drive = "d9"}}};

    tape.library->not_open = "the changer does not answer";
    for (const auto& [type, body] : all) {
        CAPTURE(type);
        const FakeFop& fop = stage.call({.type = type_of(type),
                                         .body = body,
                                         .pool = type == "format_medium" ? "fast" : "",
                                         .rights = fop::kAllRights});
        CHECK(fop.status() == fop::Status::kBusy);
        CHECK(fop.answer->words == "the tape library is not open: the changer does not answer");
    }
    CHECK(tape.library->formatted.empty());
    CHECK(tape.library->unloaded.empty());

    // It is opened soon after the start of the node.
    tape.library->not_open = "";
    CHECK(tape.status_of("media", fop::Media{}) == fop::Status::kTryAgain);
    CHECK(tape.status_of("unload_drive", fop::UnloadDrive{.drive = "d9"}) ==
          fop::Status::kTryAgain);
    CHECK(tape.status_of("recalls", fop::Recalls{}) == fop::Status::kTryAgain);
    tape.library->not_open.reset();
    CHECK(tape.status_of("recalls", fop::Recalls{}) == fop::Status::kDone);
    CHECK(tape.status_of("media", fop::Media{}) == fop::Status::kDone);
}

TEST_CASE("reqh tape: media are changed by administrators, through the library", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const auto format = [&](fop::Rights rights) -> const FakeFop& {
        return stage.call({.type = type_of("format_medium"),
                           .body = fop::FormatMedium{.name = "TAPE01L9", .forget_data = true},
                           .pool = "fast",
                           .rights = rights});
    };
    CHECK(format(fop::kRead | fop::kWrite).status() == fop::Status::kDenied);
    REQUIRE(tape.library->formatted.empty());
    CHECK(format(fop::kAllRights).status() == fop::Status::kDone);
    REQUIRE(tape.library->formatted.size() == 1);
    CHECK(tape.library->formatted[0].barcode == "TAPE01L9");
    CHECK(tape.library->formatted[0].pool == "fast");
    CHECK(tape.library->formatted[0].force == library::FormatForce::kForgetData);

    using Kind = library::MediaOutcome::Kind;
    tape.library->outcome = {.kind = Kind::kRefused, .words = "objects need it"};
    const FakeFop& refused = format(fop::kAllRights);
    CHECK(refused.status() == fop::Status::kExists);
    CHECK(refused.answer->words == "objects need it");
    tape.library->outcome = {.kind = Kind::kNoSuchDrive, .words = "there is no drive d9"};
    CHECK(tape.status_of("load_medium", fop::LoadMedium{.name = "TAPE01L9", .drive = "d9"}) ==
          fop::Status::kNotFound);
    CHECK(tape.library->loaded.at(0).drive == "d9");
    CHECK(tape.status_of("unload_drive", fop::UnloadDrive{.drive = "d9"}) ==
          fop::Status::kNotFound);
    CHECK(tape.library->unloaded == std::vector<std::string>{"d9"});
}

TEST_CASE("reqh tape: a format is given up when nobody waits for it any more", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    tape.library->format_takes = 1h;
    FopSpec spec{.type = type_of("format_medium"),
                 .body = fop::FormatMedium{.name = "TAPE01L9"},
                 .pool = "fast",
                 .rights = fop::kAllRights};
    FakeFop& interrupted = stage.send(spec);
    stage.run_for(1min);
    REQUIRE(tape.library->formatted.size() == 1);
    CHECK(tape.library->formats_given_up == 0);
    interrupted.cancel_source().cancel();
    stage.run_for(2s);
    CHECK(tape.library->formats_given_up == 1);
    CHECK(interrupted.answer.has_value());

    spec.deadline = after(stage.world.now(), 1min);
    const FakeFop& late = stage.send(spec);
    stage.run_for(50s);
    CHECK(tape.library->formats_given_up == 1);
    stage.run_for(12s);
    CHECK(tape.library->formats_given_up == 2);
    CHECK(late.answer.has_value());
}

TEST_CASE("reqh tape: a sync of a pool waits for the library", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    tape.library->sync_takes = 10min;
    const FopSpec spec{.type = type_of("sync_tape"), .body = fop::SyncTape{}, .pool = "cold"};
    const FakeFop& done = stage.send(spec);
    stage.run_for(9min);
    CHECK_FALSE(done.answer.has_value());
    stage.run_for(2min);
    CHECK(done.status() == fop::Status::kDone);
    CHECK(tape.library->synced == std::vector<std::string>{"cold"});

    FopSpec of_disks = spec;
    of_disks.pool = "fast";
    CHECK(stage.call(of_disks).status() == fop::Status::kNotFound);
    FopSpec denied = spec;
    denied.rights = fop::kRead;
    CHECK(stage.call(denied).status() == fop::Status::kDenied);

    FopSpec late = spec;
    late.deadline = after(stage.world.now(), 1min);
    const FakeFop& timed_out = stage.call(late, 1);
    CHECK(timed_out.status() == fop::Status::kTimedOut);
    CHECK(timed_out.answer->words.find("are on tape yet") != std::string_view::npos);
    tape.library->sync_takes = Duration::zero();
    tape.library->sync_result =
        std::unexpected(Error{.code = Errc::kNotFound, .context = "not a tape pool"});
    CHECK(stage.call(spec).status() == fop::Status::kNotFound);
}

TEST_CASE("reqh tape: drives are taken down and brought up by administrators", "[reqh]") {
    TapeStage tape;
    const auto set = [&](bool down, fop::Rights rights) {
        return tape.stage
            .call({.type = type_of("set_drive"),
                   .body = fop::SetDrive{.drive = "drive0", .down = down},
                   .rights = rights})
            .status();
    };
    CHECK(set(true, fop::kRead | fop::kWrite) == fop::Status::kDenied);
    CHECK(set(true, fop::kAllRights) == fop::Status::kDone);
    CHECK(set(false, fop::kAllRights) == fop::Status::kDone);
    CHECK(tape.library->taken_down == std::vector<std::string>{"drive0"});
    CHECK(tape.library->brought_up == std::vector<std::string>{"drive0"});
}

TEST_CASE("reqh tape: cartridges are exported and imported by administrators", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const auto ask = [&](std::string_view type, const fop::RequestBody& body,
                         fop::Rights rights) -> const FakeFop& {
        return stage.call({.type = type_of(type), .body = body, .rights = rights});
    };
    const fop::ExportMedium wish{.name = "TAPE01L9", .hide_objects = true};
    CHECK(ask("export_medium", wish, fop::kRead | fop::kWrite).status() == fop::Status::kDenied);
    CHECK(ask("import_media", fop::ImportMedia{}, fop::kRead | fop::kWrite).status() ==
          fop::Status::kDenied);
    REQUIRE(tape.library->exported.empty());
    REQUIRE(tape.library->imported.empty());

    tape.library->outcome.objects = 12;
    tape.library->outcome.only_here = 3;
    tape.library->outcome.is_in_exchange = true;
    const FakeFop& exported = ask("export_medium", wish, fop::kAllRights);
    REQUIRE(exported.status() == fop::Status::kDone);
    const fop::ExportMediumReply told{.objects = 12, .only_here = 3, .in_exchange = true};
    CHECK(std::get<fop::ExportMediumReply>(exported.answer->body) == told);
    CHECK(tape.library->exported.at(0).barcode == "TAPE01L9");
    CHECK(tape.library->exported.at(0).hides_objects);

    tape.library->outcome.imported = {
        {.id = 1, .barcode = "TAPE01L9", .state = library::CartridgeState::kReadOnly}};
    const FakeFop& imported = ask("import_media", fop::ImportMedia{}, fop::kAllRights);
    REQUIRE(imported.status() == fop::Status::kDone);
    CHECK(std::get<fop::ImportMediaReply>(imported.answer->body).total == 1);
    const auto entries = fop::read_media(imported.answer->payload);
    REQUIRE(entries.has_value());
    CHECK(entries->at(0).barcode == "TAPE01L9");
    CHECK(entries->at(0).state == "read-only");
    CHECK(tape.library->imported == std::vector<std::string>{""});

    using Kind = library::MediaOutcome::Kind;
    tape.library->outcome = {.kind = Kind::kRefused, .words = "cartridge TAPE01L9 is in use"};
    const FakeFop& refused = ask("export_medium", wish, fop::kAllRights);
    CHECK(refused.status() == fop::Status::kExists);
    CHECK(refused.answer->words == "cartridge TAPE01L9 is in use");
}

TEST_CASE("reqh tape: a repack is ordered by administrators, and tells all of its failures",
          "[reqh]") {
    TapeStage tape;
    using Order = fop::MediumWork::Order;
    const auto ask = [&](Order order, std::uint32_t first, fop::Rights rights) -> const FakeFop& {
        return tape.stage.call(
            {.type = type_of("medium_work"),
             .body = fop::MediumWork{.name = "TAPE01L9", .order = order, .first = first},
             .rights = rights});
    };
    CHECK(ask(Order::kBegin, 0, fop::kRead | fop::kWrite).status() == fop::Status::kDenied);
    REQUIRE(tape.library->repacked.empty());
    const FakeFop& begun = ask(Order::kBegin, 0, fop::kAllRights);
    REQUIRE(begun.status() == fop::Status::kDone);
    CHECK(std::get<fop::MediumWorkReply>(begun.answer->body).state ==
          fop::MediumWorkReply::State::kNone);
    CHECK(tape.library->repacked == std::vector<std::string>{"TAPE01L9"});

    library::MediumWork& work = tape.library->work.emplace();
    work.state = library::MediumWork::State::kPartly;
    work.reason = "some copies could not be moved";
    work.copies = 4000;
    for (std::uint32_t i = 0; i < 1200; ++i) {
        work.add({.fid = {}, .file = i, .name = {}, .reason = std::string(100, 'x')});
    }
    std::uint32_t first = 0;
    while (first < 1000) {
        const FakeFop& shown = ask(Order::kShow, first, fop::kAllRights);
        REQUIRE(shown.status() == fop::Status::kDone);
        const auto& reply = std::get<fop::MediumWorkReply>(shown.answer->body);
        CHECK(reply.state == fop::MediumWorkReply::State::kPartly);
        CHECK(reply.failures == 1200);
        CHECK(reply.listed == 1000);
        CHECK(reply.reason == work.reason);
        const auto entries = fop::read_failed_copies(shown.answer->payload);
        REQUIRE(entries.has_value());
        REQUIRE_FALSE(entries->empty());
        for (const fop::FailedCopyEntry& each : *entries) CHECK(each.file == first++);
    }
    CHECK(tape.library->repacked.size() == 1);
    using Kind = library::MediaOutcome::Kind;
    tape.library->outcome = {.kind = Kind::kRefused, .words = "it is not repacked"};
    const FakeFop& refused = ask(Order::kEnd, 0, fop::kAllRights);
    CHECK(refused.status() == fop::Status::kExists);
    CHECK(refused.answer->words == "it is not repacked");
}

TEST_CASE("reqh tape: a rescue is ordered by administrators, and has a pool", "[reqh]") {
    TapeStage tape;
    const auto ask = [&](fop::Rights rights) {
        return tape.stage
            .call({.type = type_of("medium_work"),
                   .body = fop::MediumWork{.name = "TAPE01L9",
                                           .kind = fop::MediumWork::Kind::kRescue,
                                           .order = fop::MediumWork::Order::kBegin},
                   .pool = "cold",
                   .rights = rights})
            .status();
    };
    CHECK(ask(fop::kRead | fop::kWrite) == fop::Status::kDenied);
    REQUIRE(tape.library->rescued.empty());
    REQUIRE(ask(fop::kAllRights) == fop::Status::kDone);
    REQUIRE(tape.library->rescued.size() == 1);
    CHECK(tape.library->rescued.front().barcode == "TAPE01L9");
    CHECK(tape.library->rescued.front().pool == "cold");
    CHECK(tape.library->repacked.empty());
}

TEST_CASE("reqh tape: formats are listed for everybody, and cancelled by administrators",
          "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const Instant now = stage.world.now();
    tape.library->format_rows = {
        {.barcode = "TAPE01L9", .pool = "cold", .asked_at = now, .has_begun = true},
        {.barcode = "TAPE02L9", .pool = "cold", .asked_at = now}};
    stage.world.run_for(3s);
    const FakeFop& listed = stage.call(
        {.type = type_of("recalls"), .body = fop::Recalls{.formats = true}, .rights = fop::kRead});
    REQUIRE(listed.status() == fop::Status::kDone);
    const auto& reply = std::get<fop::RecallsReply>(listed.answer->body);
    CHECK(reply.formats);
    CHECK(reply.total == 2);
    const auto entries = fop::read_formats(listed.answer->payload);
    REQUIRE(entries.has_value());
    REQUIRE(entries->size() == 2);
    CHECK(entries->front().cartridge == "TAPE01L9");
    CHECK(entries->front().pool == "cold");
    CHECK(entries->front().state == fop::FormatEntry::State::kRunning);
    CHECK(entries->back().state == fop::FormatEntry::State::kWaiting);
    CHECK(entries->back().asked_ms >= 3000);
    // Recalls are listed without them.
    CHECK(tape.status_of("recalls", fop::Recalls{}) == fop::Status::kDone);

    const auto cancel = [&](fop::Rights rights) {
        return stage
            .call({.type = type_of("medium_work"),
                   .body = fop::MediumWork{.name = "TAPE02L9",
                                           .kind = fop::MediumWork::Kind::kFormat,
                                           .order = fop::MediumWork::Order::kEnd},
                   .rights = rights})
            .status();
    };
    CHECK(cancel(fop::kRead | fop::kWrite) == fop::Status::kDenied);
    CHECK(tape.library->cancelled_formats.empty());
    CHECK(cancel(fop::kAllRights) == fop::Status::kDone);
    CHECK(tape.library->cancelled_formats == std::vector<std::string>{"TAPE02L9"});
    CHECK(tape.library->cancelled.empty());
}

}  // namespace fopd::reqh::testing::tape_fops

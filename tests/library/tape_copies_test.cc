// Goal: objects of a pool with several copies are on as many cartridges, or on none as far as the
// records say, and one copy is enough to bring an object back.
// Method: a library in the simulated world, with faults of its drives and power cuts.

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "library/outgoing_copies.h"
#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

TapeStageOptions two_copies(std::uint32_t drives = 2) {
    TapeStageOptions options;
    options.drives = drives;
    options.pool.copies = 2;
    return options;
}

std::set<store::VsnText> cartridges_of(TapeStage& stage, store::Fid fid) {
    std::set<store::VsnText> cartridges;
    for (const store::Copy& each : stage.copies_of(fid)) cartridges.insert(each.cartridge.vsn);
    return cartridges;
}

store::Copy copy_at(std::uint64_t offset, std::uint64_t length, char cartridge) {
    store::Copy copy{.offset = offset, .length = length};
    copy.cartridge.vsn.fill(cartridge);
    return copy;
}

}  // namespace

TEST_CASE("library copies: each byte counts the cartridges that have it", "[library]") {
    const std::vector<store::Copy> copies{copy_at(0, 100, 'A'), copy_at(0, 50, 'B'),
                                          copy_at(50, 50, 'C'), copy_at(50, 50, 'A')};
    CHECK(have_copies(copies, 1, 0, 100));
    CHECK(have_copies(copies, 2, 0, 100));
    CHECK_FALSE(have_copies(copies, 3, 0, 100));
    CHECK_FALSE(have_copies(copies, 1, 0, 101));
    CHECK(have_copies(copies, 2, 40, 60));
    const auto without = std::span(copies).first(2);
    CHECK(have_copies(without, 2, 0, 50));
    CHECK_FALSE(have_copies(without, 2, 0, 51));
    // Two copies on one cartridge count once.
    const std::vector<store::Copy> twice{copy_at(0, 100, 'A'), copy_at(20, 80, 'A')};
    CHECK_FALSE(have_copies(twice, 2, 30, 40));
    CHECK_FALSE(have_copies({}, 1, 0, 1));
}

TEST_CASE("library copies: a synced object is on two cartridges, and leaves its disk then",
          "[library]") {
    TapeStage stage(two_copies());
    const auto book = put_some(stage, 12, 200'000);
    REQUIRE(stage.sync().has_value());

    for (const auto& [fid, bytes] : book) {
        REQUIRE(stage.copies_of(fid).size() == 2);
        REQUIRE(cartridges_of(stage, fid).size() == 2);
        REQUIRE(stage.release(fid).has_value());
    }
    for (const auto& [fid, bytes] : book) REQUIRE(stage.recalled(fid) == bytes);
    // What is written again needs both copies again.
    const store::Fid fid = book.begin()->first;
    stage.overwrite(fid, pattern(1000, 7));
    REQUIRE(stage.release(fid).error().code == Errc::kBusy);
    REQUIRE(stage.sync().has_value());
    REQUIRE(cartridges_of(stage, fid).size() == 2);
    stage.stop();
}

TEST_CASE("library copies: with one drive there are none, and the reason is said", "[library]") {
    TapeStage stage(two_copies(1));
    const auto book = put_some(stage, 3, 200'000);

    REQUIRE(stage.sync().error().code == Errc::kIo);
    for (const auto& [fid, bytes] : book) {
        REQUIRE(stage.copies_of(fid).empty());
        REQUIRE(stage.release(fid).error().code == Errc::kBusy);
    }
    REQUIRE(stage.events.count("library.too_few_drives") == 1);
}

TEST_CASE("library copies: if one cartridge cannot be written, no copy is recorded", "[library]") {
    TapeStage stage(two_copies());
    const auto book = put_some(stage, 6, 200'000);
    const auto fault = GENERATE(devices::TapeFault::kWrite, devices::TapeFault::kLateWrite,
                                devices::TapeFault::kLoad);
    stage.drive(1).inject(fault);

    // At no time has an object a single copy.
    for (int step = 0; step < 200; ++step) {
        [[maybe_unused]] const auto synced = stage.sync(1s);
        for (const auto& [fid, bytes] : book) REQUIRE(cartridges_of(stage, fid).size() != 1);
    }
    REQUIRE(stage.sync(1h).has_value());
    for (const auto& [fid, bytes] : book) {
        REQUIRE(cartridges_of(stage, fid).size() == 2);
        REQUIRE(stage.release(fid).has_value());
    }
    for (const auto& [fid, bytes] : book) REQUIRE(stage.recalled(fid) == bytes);
}

TEST_CASE("library copies: a drive that dies while it writes holds nobody up", "[library]") {
    TapeStage stage(two_copies(3));
    const auto book = put_some(stage, 6, 200'000);
    stage.drive(0).inject(devices::TapeFault::kDeath);

    for (int tries = 0; tries < 5 && !stage.sync(1h); ++tries) stage.run_for(1min);
    for (const auto& [fid, bytes] : book) {
        REQUIRE(cartridges_of(stage, fid).size() == 2);
        REQUIRE(stage.release(fid).has_value());
    }
    for (const auto& [fid, bytes] : book) REQUIRE(stage.recalled(fid) == bytes);
}

TEST_CASE("library copies: a drive that cannot write goes down, and no cartridge is blamed",
          "[library]") {
    TapeStage stage(two_copies(3));
    stage.run_for(1min);
    stage.drive(0).faults().write_ppm = 1'000'000;
    std::map<store::Fid, Bytes> book;
    for (int round = 0; round < 6; ++round) {
        book.merge(put_some(stage, 2, 200'000));
        REQUIRE(stage.sync(1h).has_value());
        unload_all(stage);
    }
    const std::vector<DriveRow> drives = stage.library().drives();
    CHECK(drives.front().activity == "down");
    CHECK(std::ranges::count(drives, "down", &DriveRow::activity) == 1);
    for (const Cartridge& each : stage.library().media()) {
        CHECK((each.state == CartridgeState::kOk || each.state == CartridgeState::kBlank));
    }
    for (const auto& [fid, bytes] : book) REQUIRE(cartridges_of(stage, fid).size() == 2);
}

TEST_CASE("library copies: an object comes back from the copy that can be read", "[library]") {
    TapeStage stage(two_copies());
    const auto book = put_some(stage, 4, 200'000);
    REQUIRE(stage.sync().has_value());
    for (const auto& [fid, bytes] : book) REQUIRE(stage.release(fid).has_value());
    for (const DriveRow& each : stage.library().drives()) {
        const MediaOutcome unloaded = stage.at(0, stage.library().unload(each.name));
        REQUIRE(unloaded.kind == MediaOutcome::Kind::kDone);
    }
    // People take one of the two cartridges away.
    const store::VsnText gone = stage.copies_of(book.begin()->first).at(0).cartridge.vsn;
    const std::string vsn(gone.begin(), gone.end());
    stage.stop();
    bool is_removed = false;
    for (std::uint32_t address = 0; address < 4096 && !is_removed; ++address) {
        const bool has_cartridge =
            stage.tapes.has_element(address) && stage.tapes.at(address) != nullptr;
        if (!has_cartridge) continue;
        if (!stage.tapes.at(address)->info().barcode.starts_with(vsn)) continue;
        stage.tapes.remove(address);
        is_removed = true;
    }
    REQUIRE(is_removed);
    stage.start();

    for (const auto& [fid, bytes] : book) REQUIRE(stage.recalled(fid) == bytes);
}

TEST_CASE("library copies: after a loss of power objects have all their copies or none",
          "[library]") {
    const auto seed = GENERATE(range(1, 6));
    TapeStageOptions options = two_copies();
    options.seed = static_cast<std::uint64_t>(seed);
    options.pool.migrate_age = 5s;
    TapeStage stage(options);
    std::map<store::Fid, Bytes> book;
    for (int round = 0; round < 4; ++round) {
        book.merge(put_some(stage, 4, 200'000));
        stage.run_for(1s);  // They are durable.
        stage.lose_power_within(400,
                                Duration(static_cast<Duration::rep>(stage.random.below(90)) * 1s));
        stage.start();
        for (const auto& [fid, bytes] : book) REQUIRE(cartridges_of(stage, fid).size() != 1);
    }
    stage.run_for(1min);
    for (int tries = 0; tries < 5 && !stage.sync(1h); ++tries) stage.run_for(1min);
    for (const auto& [fid, bytes] : book) {
        REQUIRE(cartridges_of(stage, fid).size() >= 2);
        REQUIRE(stage.release(fid).has_value());
    }
    for (const auto& [fid, bytes] : book) REQUIRE(stage.recalled(fid) == bytes);
}

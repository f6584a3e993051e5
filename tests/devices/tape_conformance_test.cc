// Goal: every tape drive and changer keeps the contracts of devices/tape/tape_drive.h and
// changer.h.
#include "core/random.h"
#include "tests/devices/tape_kinds.h"

using namespace fopd;
using namespace fopd::devices;
using namespace fopd::devices::testing;

namespace {

// Calls `fact` with a library of each row.
template <typename Fact>
void for_each_library(Fact fact) {
    const TapeRow row = GENERATE(from_range(kTapeRows.begin(), kTapeRows.end()));
    CAPTURE(row.library, row.reactor);
    TapeStage stage(row);
    fact(stage);
}

// Tries also the drive of this machine that is named in the environment.
template <typename Fact>
void for_each_drive(Fact fact) {
    const std::vector<TapeRow> rows = drive_rows();
    const TapeRow row = GENERATE_REF(from_range(rows.begin(), rows.end()));
    CAPTURE(row.library, row.reactor);
    TapeStage stage(row);
    fact(stage);
}

constexpr std::string_view kWritten = "abc|de||f|";

}  // namespace

TEST_CASE("devices tape: a drive without a cartridge has nothing to load", "[devices]") {
    for_each_library([](TapeStage& stage) {
        REQUIRE(stage.load().error().code == Errc::kNotFound);
        REQUIRE(stage.unload().error().code == Errc::kNotFound);
        REQUIRE_FALSE(stage.drive().loaded().has_value());
        REQUIRE(stage.write("a").error().code == Errc::kInvalid);
        REQUIRE(stage.read().error().code == Errc::kInvalid);
        REQUIRE(stage.marks(1).error().code == Errc::kInvalid);
        REQUIRE(stage.sync().error().code == Errc::kInvalid);
        REQUIRE(stage.locate(0).error().code == Errc::kInvalid);
        REQUIRE(stage.skip(1).error().code == Errc::kInvalid);
        REQUIRE(stage.run(stage.drive().position()).error().code == Errc::kInvalid);
    });
}

TEST_CASE("devices tape: a loaded cartridge is what it is", "[devices]") {
    for_each_library([](TapeStage& stage) {
        const auto address = stage.add({.barcode = "A00001L9", .serial = "S1"});
        REQUIRE(stage.move(address, kDriveAddress).has_value());

        const auto loaded = stage.load();

        REQUIRE(loaded.has_value());
        REQUIRE(loaded->technology == "lto9");
        REQUIRE(loaded->capacity_bytes == TapeStage::kCapacity);
        REQUIRE(loaded->serial == "S1");
        REQUIRE_FALSE(loaded->write_protected);
        REQUIRE_FALSE(loaded->cleaning);
        REQUIRE(stage.drive().loaded().has_value());
        REQUIRE(stage.position() == TapePosition{});
        REQUIRE(stage.read() == ".");
        REQUIRE(stage.load().error().code == Errc::kInvalid);
    });
}

TEST_CASE("devices tape: blocks and filemarks come back in order", "[devices]") {
    for_each_drive([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all(kWritten);
        REQUIRE(stage.position() == TapePosition{.block = 10, .filemarks = 4});
        REQUIRE(stage.locate(0).has_value());

        for (const auto& expected : {"a", "b", "c", "|", "d"}) REQUIRE(stage.read() == expected);
        REQUIRE(stage.position() == TapePosition{.block = 5, .filemarks = 1});
        REQUIRE(stage.rest() == "e||f|.");
        REQUIRE(stage.read() == ".");
        REQUIRE(stage.position() == TapePosition{.block = 10, .filemarks = 4});
    });
}

TEST_CASE("devices tape: blocks have any size up to the greatest", "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank();
        std::vector<std::string> blocks;
        core::Random random(1);
        for (const std::size_t size : {1UL, 2UL, 79UL, 80UL, 4096UL, 65537UL, kTapeBlockMax}) {
            blocks.emplace_back(size, '\0');
            for (char& each : blocks.back()) each = static_cast<char>(random.below(256));
            REQUIRE(stage.write(blocks.back()) == TapeRoom::kPlenty);
        }

        REQUIRE(stage.write("").error().code == Errc::kInvalid);
        REQUIRE(stage.write(std::string(kTapeBlockMax + 1, 'a')).error().code == Errc::kInvalid);
        REQUIRE(stage.position().block == blocks.size());
        REQUIRE(stage.locate(0).has_value());
        for (const std::string& block : blocks) REQUIRE((stage.read() == block));
        REQUIRE(stage.read() == ".");
    });
}

TEST_CASE("devices tape: a block that the memory does not hold is passed", "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank();
        REQUIRE(stage.write("large").has_value());
        REQUIRE(stage.write("next").has_value());
        REQUIRE(stage.locate(0).has_value());

        REQUIRE(stage.read(4).error().code == Errc::kInvalid);

        REQUIRE(stage.position().block == 1);
        REQUIRE(stage.read(4) == "next");
    });
}

TEST_CASE("devices tape: writing ends the data", "[devices]") {
    for_each_drive([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all(kWritten);
        REQUIRE(stage.locate(2).has_value());

        REQUIRE(stage.write("X").has_value());

        REQUIRE(stage.position() == TapePosition{.block = 3, .filemarks = 0});
        REQUIRE(stage.read() == ".");
        REQUIRE(stage.content() == "abX.");
        REQUIRE(stage.locate(1).has_value());
        REQUIRE(stage.marks(2).has_value());
        REQUIRE(stage.position() == TapePosition{.block = 3, .filemarks = 2});
        REQUIRE(stage.content() == "a||.");
        REQUIRE(stage.locate(0).has_value());
        REQUIRE(stage.write("new").has_value());
        REQUIRE(stage.content() == "new.");
    });
}

TEST_CASE("devices tape: a sync in the middle ends nothing", "[devices]") {
    for_each_drive([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all(kWritten);
        REQUIRE(stage.locate(2).has_value());

        REQUIRE(stage.sync() == TapeRoom::kPlenty);

        REQUIRE(stage.rest() == "c|de||f|.");
    });
}

TEST_CASE("devices tape: blocks and filemarks are found by number", "[devices]") {
    for_each_drive([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all(kWritten);

        REQUIRE(stage.locate(5).has_value());
        REQUIRE(stage.rest() == "e||f|.");
        REQUIRE(stage.locate(10).has_value());
        REQUIRE(stage.read() == ".");
        REQUIRE(stage.locate(1).has_value());
        REQUIRE(stage.skip(2).has_value());
        REQUIRE(stage.position() == TapePosition{.block = 7, .filemarks = 2});
        REQUIRE(stage.rest() == "|f|.");
        REQUIRE(stage.locate(3).has_value());
        REQUIRE(stage.skip(1).has_value());
        REQUIRE(stage.position().block == 4);
        REQUIRE(stage.skip(0).has_value());
        REQUIRE(stage.position().block == 4);
        REQUIRE(stage.locate(0).has_value());
        stage.to_end();
        REQUIRE(stage.position() == TapePosition{.block = 10, .filemarks = 4});
    });
}

TEST_CASE("devices tape: what is beyond the data leads to their end", "[devices]") {
    for_each_drive([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all(kWritten);
        const TapePosition end{.block = 10, .filemarks = 4};

        REQUIRE(stage.locate(11).error().code == Errc::kNotFound);
        REQUIRE(stage.position() == end);
        REQUIRE(stage.locate(1).has_value());
        REQUIRE(stage.skip(5).error().code == Errc::kNotFound);
        REQUIRE(stage.position() == end);
        REQUIRE(stage.skip(1).error().code == Errc::kNotFound);
        REQUIRE(stage.position() == end);
    });
}

TEST_CASE("devices tape: the end is announced early enough to end a file", "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank();
        const std::string block(kTapeBlockMax, 'x');
        std::size_t plenty = 0;
        while (stage.write(block) == TapeRoom::kPlenty) ++plenty;
        std::size_t early = 0;
        while (early < 3 && stage.write(block) == TapeRoom::kEarlyWarning) ++early;
        REQUIRE(stage.marks(1) == TapeRoom::kEarlyWarning);
        REQUIRE(stage.write(std::string(80, 'e')) == TapeRoom::kEarlyWarning);
        REQUIRE(stage.marks(1, TapeDrive::Marks::kDurable) == TapeRoom::kEarlyWarning);

        // 16 MiB less 1 MiB, and what the lengths of blocks need.
        REQUIRE(plenty == 59);
        REQUIRE(early >= 2);
        const TapePosition end = stage.position();
        REQUIRE(stage.write(block) == TapeRoom::kFull);
        REQUIRE(stage.position() == end);
        REQUIRE(stage.sync().has_value());
        REQUIRE(stage.locate(end.block - 2).has_value());
        REQUIRE(stage.read() == std::string(80, 'e'));
        REQUIRE(stage.locate(0).has_value());
        REQUIRE(stage.write("x") == TapeRoom::kPlenty);
    });
}

TEST_CASE("devices tape: a sync that fails near the end makes nothing durable", "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank({.capacity_bytes = 4UL << 20});
        REQUIRE(stage.write("a").has_value());
        REQUIRE(stage.sync().has_value());
        const std::string block(kTapeBlockMax, 'x');
        while (stage.write(block) == TapeRoom::kPlenty) {
        }
        REQUIRE(stage.write_in_vain("b") == TapeRoom::kEarlyWarning);

        REQUIRE_FALSE(stage.sync().has_value());

        // After a power loss the tape has what was durable, and perhaps more.
        if (!stage.keeps_image()) return;
        REQUIRE(stage.image.at(kDriveAddress)->durable_count() == 1);
    });
}

TEST_CASE("devices tape: filemarks need room, too", "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank({.capacity_bytes = 1000});

        REQUIRE(stage.marks(251) == TapeRoom::kFull);
        REQUIRE(stage.position().block == 0);
        REQUIRE(stage.marks(250) == TapeRoom::kEarlyWarning);
        REQUIRE(stage.marks(1, TapeDrive::Marks::kDurable) == TapeRoom::kFull);
        REQUIRE(stage.write("a") == TapeRoom::kFull);
        REQUIRE(stage.position().filemarks == 250);
    });
}

TEST_CASE("devices tape: a write-protected cartridge is only read", "[devices]") {
    for_each_library([](TapeStage& stage) {
        const auto address = stage.add({.barcode = "P", .write_protected = true});
        REQUIRE(stage.move(address, kDriveAddress).has_value());

        const auto loaded = stage.load();

        REQUIRE(loaded->write_protected);
        REQUIRE(stage.write("a").error().code == Errc::kDenied);
        REQUIRE(stage.marks(1).error().code == Errc::kDenied);
        REQUIRE(stage.sync().has_value());
        REQUIRE(stage.read() == ".");
    });
}

TEST_CASE("devices tape: a drive takes the generations that it can read", "[devices]") {
    for_each_library([](TapeStage& stage) {
        const auto old = stage.add({.technology = "lto7"});
        const auto last = stage.add({.technology = "lto8"});
        const auto next = stage.add({.technology = "lto10"});
        for (const std::uint32_t address : {old, next}) {
            REQUIRE(stage.move(address, kDriveAddress).has_value());
            REQUIRE(stage.load().error().code == Errc::kUnsupported);
            REQUIRE(stage.move(kDriveAddress, address).has_value());
        }
        REQUIRE(stage.move(last, kDriveAddress).has_value());

        const auto loaded = stage.load();

        REQUIRE(loaded->technology == "lto8");
        REQUIRE(stage.write("a").has_value());
    });
}

TEST_CASE("devices tape: a cleaning cartridge has no data", "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank({.barcode = "CLN001L1", .cleaning = true});

        REQUIRE(stage.drive().loaded()->cleaning);
        REQUIRE(stage.write("a").error().code == Errc::kUnsupported);
        REQUIRE(stage.read().error().code == Errc::kUnsupported);
        REQUIRE(stage.unload().has_value());
    });
}

TEST_CASE("devices tape: another drive reads what one has written", "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all(kWritten);
        REQUIRE(stage.unload().has_value());
        REQUIRE_FALSE(stage.drive().loaded().has_value());
        REQUIRE(stage.unload().has_value());
        REQUIRE(stage.move(kDriveAddress, kDriveAddress + 1).has_value());

        REQUIRE(stage.load(1).has_value());

        std::string block(1, '?');
        const auto read = stage.run(stage.drive(1).read(block_of(block)));
        REQUIRE(read.has_value());
        REQUIRE(block == "a");
        REQUIRE(stage.unload(1).has_value());
        REQUIRE(stage.move(kDriveAddress + 1, kDriveAddress).has_value());
        REQUIRE(stage.load().has_value());
        REQUIRE(stage.position() == TapePosition{});
        REQUIRE(stage.rest() == std::string(kWritten) + ".");
    });
}

TEST_CASE("devices changer: the inventory has every element", "[devices]") {
    for_each_library([](TapeStage& stage) {
        const auto one = stage.add({.barcode = "A00001L9"});
        const auto two = stage.add({.barcode = "A00001L9"});
        const auto none = stage.add({.barcode = ""});
        REQUIRE(stage.move(two, kDriveAddress + 1).has_value());

        const auto all = stage.inventory();

        REQUIRE(all.size() == 12);
        REQUIRE(std::ranges::is_sorted(all, {}, &LibraryElement::address));
        REQUIRE(all[0].kind == LibraryElement::Kind::kDrive);
        REQUIRE(all[0].drive_serial == stage.drive(0).serial());
        REQUIRE_FALSE(all[0].full);
        REQUIRE(all[1].drive_serial == stage.drive(1).serial());
        REQUIRE(all[1].barcode == "A00001L9");
        REQUIRE(stage.drive(0).serial() != stage.drive(1).serial());
        REQUIRE(stage.element(kExchangeAddress).kind == LibraryElement::Kind::kExchange);
        REQUIRE(stage.element(one).kind == LibraryElement::Kind::kStorage);
        REQUIRE(stage.element(one).barcode == "A00001L9");
        REQUIRE(stage.element(none).full);
        REQUIRE(stage.element(none).barcode.empty());
        REQUIRE_FALSE(stage.element(two).full);
    });
}

TEST_CASE("devices changer: a move that cannot be moves nothing", "[devices]") {
    for_each_library([](TapeStage& stage) {
        const auto one = stage.add({.barcode = "A00001L9"});
        const auto two = stage.add({.barcode = "A00002L9"});
        const auto before = stage.inventory();

        REQUIRE(stage.move(one, two).error().code == Errc::kBusy);
        REQUIRE(stage.move(one, one).error().code == Errc::kBusy);
        REQUIRE(stage.move(kDriveAddress, one + 5).error().code == Errc::kNotFound);
        REQUIRE(stage.move(one, 77777).error().code == Errc::kNotFound);
        REQUIRE(stage.move(77777, one).error().code == Errc::kNotFound);
        REQUIRE(stage.move(one, kStorageAddress + TapeStage::kStorage).error().code ==
                Errc::kNotFound);

        REQUIRE(stage.inventory() == before);
    });
}

TEST_CASE("devices changer: a drive must unload before its cartridge is taken", "[devices]") {
    for_each_library([](TapeStage& stage) {
        const auto home = stage.add({.barcode = "A00001L9"});
        REQUIRE(stage.move(home, kDriveAddress).has_value());
        REQUIRE(stage.load().has_value());

        REQUIRE(stage.move(kDriveAddress, home).error().code == Errc::kBusy);

        REQUIRE(stage.write("a").has_value());
        REQUIRE(stage.unload().has_value());
        REQUIRE(stage.move(kDriveAddress, home).has_value());
        REQUIRE(stage.element(home).full);
        REQUIRE(stage.load().error().code == Errc::kNotFound);
    });
}

TEST_CASE("devices changer: cartridges stay where they are when the process ends", "[devices]") {
    for_each_library([](TapeStage& stage) {
        const auto home = stage.add({.barcode = "A00001L9"});
        stage.add({.barcode = "A00002L9"});
        REQUIRE(stage.move(home, kExchangeAddress + 1).has_value());
        stage.load_blank({.barcode = "A00003L9"});
        const auto before = stage.inventory();

        stage.kill();

        REQUIRE(stage.inventory() == before);
        REQUIRE(stage.unload().has_value());
        REQUIRE(stage.move(kDriveAddress, home).has_value());
        stage.crash(1);
        REQUIRE(stage.element(home).barcode == "A00003L9");
    });
}

TEST_CASE("devices tape: everything written survives the end of the process", "[devices]") {
    for_each_drive([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all(kWritten);

        stage.kill();

        REQUIRE_FALSE(stage.drive().loaded().has_value());
        REQUIRE(stage.load().has_value());
        REQUIRE(stage.position() == TapePosition{});
        REQUIRE(stage.rest() == std::string(kWritten) + ".");
        REQUIRE(stage.write("g").has_value());
        REQUIRE(stage.content() == std::string(kWritten) + "g.");
    });
}

TEST_CASE("devices tape: what is durable survives a crash, and of the rest a first part",
          "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all("abc");
        REQUIRE(stage.marks(1, TapeDrive::Marks::kDurable) == TapeRoom::kPlenty);
        stage.write_all("def|g");

        stage.crash(GENERATE(range(1U, 11U)));

        REQUIRE(stage.load().has_value());
        std::string left = stage.rest();
        CAPTURE(left);
        // The last block may be torn.
        if (left.ends_with("!")) left.back() = '.';
        REQUIRE(left.ends_with("."));
        left.pop_back();
        REQUIRE(left.starts_with("abc|"));
        REQUIRE(std::string("abc|def|g").starts_with(left));
        REQUIRE(stage.locate(4).has_value());
        REQUIRE(stage.write("X").has_value());
        REQUIRE(stage.content() == "abc|X.");
        REQUIRE(stage.unload().has_value());
        stage.crash(1);
        REQUIRE(stage.load().has_value());
        REQUIRE(stage.content() == "abc|X.");
    });
}

TEST_CASE("devices tape: an unload makes everything durable", "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all(kWritten);
        REQUIRE(stage.unload().has_value());

        stage.crash(1);

        REQUIRE(stage.load().has_value());
        REQUIRE(stage.rest() == std::string(kWritten) + ".");
    });
}

TEST_CASE("devices tape: durable data that were overwritten are not mixed with new ones",
          "[devices]") {
    for_each_library([](TapeStage& stage) {
        stage.load_blank();
        stage.write_all("abcdef");
        REQUIRE(stage.sync().has_value());
        REQUIRE(stage.locate(2).has_value());
        stage.write_all("XY");

        stage.crash(GENERATE(range(1U, 6U)));

        REQUIRE(stage.load().has_value());
        std::string left = stage.rest();
        CAPTURE(left);
        if (left.ends_with("!")) left.back() = '.';
        const bool is_old = left == "abcdef.";
        REQUIRE((is_old || left == "ab." || left == "abX." || left == "abXY."));
    });
}

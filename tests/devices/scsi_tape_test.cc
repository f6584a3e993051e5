// Goal: drives and changers over SCSI commands cope with what devices do, and ask nothing of a
// drive that writes.
#include "tests/devices/tape_kinds.h"

using namespace fopd;
using namespace fopd::devices;
using namespace fopd::devices::testing;

namespace {

constexpr TapeRow kLto{.library = TapeKind::kScsi, .reactor = core::testing::Kind::kVirtual};
constexpr TapeRow kBlocks{.library = TapeKind::kScsiBlocks,
                          .reactor = core::testing::Kind::kVirtual};
constexpr TapeRow kCounted{.library = TapeKind::kScsiCounted,
                           .reactor = core::testing::Kind::kVirtual};

std::size_t count_of(const std::vector<std::uint8_t>& codes, ScsiCode code) {
    return static_cast<std::size_t>(std::ranges::count(codes, static_cast<std::uint8_t>(code)));
}

ScsiSense attention(std::uint16_t code) {
    return {.key = ScsiSense::kUnitAttention, .code = code};
}

}  // namespace

TEST_CASE("devices scsi drive: a drive that writes is asked nothing", "[devices]") {
    const TapeRow row = GENERATE(kLto, kBlocks, kCounted);
    TapeStage stage(row);
    stage.load_blank();
    std::vector<std::uint8_t>& codes = stage.target.drive(0).codes;
    codes.clear();

    stage.write_all("abc|de|");
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.position().block == 7);
    REQUIRE(stage.drive().loaded().has_value());

    REQUIRE(count_of(codes, ScsiCode::kWrite) == 5);
    REQUIRE(count_of(codes, ScsiCode::kWriteFilemarks) == 3);
    REQUIRE(codes.size() == 8);
}

TEST_CASE("devices scsi drive: an immediate filemark does not wait, and a sync does", "[devices]") {
    TapeStage stage(kLto);
    const auto address = stage.add({.barcode = "A00001L9"});
    REQUIRE(stage.move(address, kDriveAddress).has_value());
    REQUIRE(stage.load().has_value());
    stage.write_all("ab|");
    REQUIRE(stage.image.at(kDriveAddress)->durable_count() == 0);

    REQUIRE(stage.sync().has_value());

    REQUIRE(stage.image.at(kDriveAddress)->durable_count() == 3);
    // Nothing is left to be made durable.
    stage.target.drive(0).codes.clear();
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.target.drive(0).codes.empty());
}

TEST_CASE("devices scsi drive: a load waits until the cartridge is threaded", "[devices]") {
    TapeStage stage(kLto);
    REQUIRE(stage.move(stage.add({}), kDriveAddress).has_value());
    stage.target.drive(0).busy_answers = 40;
    const Instant before = stage.harness->now();

    REQUIRE(stage.load().has_value());

    REQUIRE(stage.harness->now() - before >= 40s);
}

TEST_CASE("devices scsi drive: a drive that another program uses is left alone", "[devices]") {
    TapeStage stage(kLto);
    const auto home = stage.add({});
    REQUIRE(stage.move(home, kDriveAddress).has_value());
    stage.target.drive(0).held_by_others = true;
    REQUIRE(stage.load().error().code == Errc::kBusy);
    REQUIRE(stage.unload().error().code == Errc::kBusy);
    REQUIRE(stage.move(kDriveAddress, home).error().code == Errc::kBusy);
    REQUIRE(count_of(stage.target.drive(0).codes, ScsiCode::kRewind) == 0);
    REQUIRE(count_of(stage.target.drive(0).codes, ScsiCode::kLoadUnload) == 0);

    stage.target.drive(0).held_by_others = false;
    REQUIRE(stage.load().has_value());
    REQUIRE(stage.target.drive(0).held);
    REQUIRE(stage.unload().has_value());
    REQUIRE_FALSE(stage.target.drive(0).held);
}

TEST_CASE("devices scsi drive: an error of earlier writes fails what comes next", "[devices]") {
    const TapeRow row = GENERATE(kLto, kBlocks, kCounted);
    TapeStage stage(row);
    stage.load_blank();
    stage.write_all("abc");
    stage.target.drive(0).next.push_back({.key = ScsiSense::kMediumError, .deferred = true});

    REQUIRE(stage.sync().error().code == Errc::kIo);

    // Nobody knows where the tape is, so that nothing is written there.
    REQUIRE(stage.write("d").error().code == Errc::kIo);
    REQUIRE(stage.read().error().code == Errc::kIo);
    REQUIRE(stage.content() == "abc.");
    REQUIRE(stage.write("d").has_value());
    REQUIRE(stage.content() == "abcd.");
}

TEST_CASE("devices scsi drive: after a reset nothing is written where the tape is not",
          "[devices]") {
    const TapeRow row = GENERATE(kLto, kBlocks, kCounted);
    const auto code = GENERATE(std::uint16_t{0x2900}, std::uint16_t{0x2800});
    TapeStage stage(row);
    stage.load_blank();
    stage.write_all("abc");
    REQUIRE(stage.sync().has_value());
    // A reset has rewound the tape.
    REQUIRE(stage.target.drive(0).deck.move_to_block(0).has_value());
    stage.target.drive(0).next.push_back(attention(code));

    REQUIRE(stage.write("d").error().code == Errc::kIo);
    REQUIRE(stage.write("d").error().code == Errc::kIo);

    REQUIRE(stage.content() == "abc.");
}

TEST_CASE("devices scsi drive: changes that do not matter are passed over", "[devices]") {
    TapeStage stage(kLto);
    stage.load_blank();
    stage.target.drive(0).next = {attention(0x2a01), attention(0x3f01), attention(0x2a02)};

    REQUIRE(stage.write("a").has_value());

    REQUIRE(stage.content() == "a.");
}

TEST_CASE("devices scsi drive: a block that cannot be read is passed", "[devices]") {
    const TapeRow row = GENERATE(kLto, kBlocks);
    TapeStage stage(row);
    stage.load_blank();
    stage.write_all("abc");
    REQUIRE(stage.unload().has_value());
    stage.image.at(kDriveAddress)->make_unreadable(1);
    REQUIRE(stage.load().has_value());

    REQUIRE(stage.read() == "a");
    REQUIRE(stage.read().error().code == Errc::kCorrupt);
    REQUIRE(stage.read() == "c");
}

TEST_CASE("devices scsi drive: a block of which a part was sent is read again", "[devices]") {
    TapeStage stage(kCounted);
    stage.load_blank();
    const std::string large(200'000, 'x');
    REQUIRE(stage.write(large).has_value());
    REQUIRE(stage.write("y").has_value());
    REQUIRE(stage.locate(0).has_value());

    REQUIRE((stage.read() == large));

    REQUIRE(stage.position().block == 1);
    REQUIRE(stage.read() == "y");
}

TEST_CASE("devices scsi drive: a read that fails leaves a known position", "[devices]") {
    TapeStage stage(kLto);
    stage.load_blank();
    stage.write_all("abc");
    REQUIRE(stage.locate(1).has_value());
    stage.target.drive(0).next.push_back({.key = ScsiSense::kHardwareError, .code = 0x4400});

    REQUIRE(stage.read().error().code == Errc::kIo);

    REQUIRE(stage.position().block == 1);
    REQUIRE(stage.read() == "b");
}

TEST_CASE("devices scsi drive: a last block that was written counts as written", "[devices]") {
    TapeStage stage(kBlocks);
    stage.load_blank();
    REQUIRE(stage.write("a").has_value());
    stage.target.drive(0).executes_next = true;
    stage.target.drive(0).next.push_back(
        {.key = ScsiSense::kVolumeOverflow, .code = 0x0002, .end_of_medium = true});

    REQUIRE(stage.write("b") == TapeRoom::kEarlyWarning);

    REQUIRE(stage.position().block == 2);
    REQUIRE(stage.content() == "ab.");
}

TEST_CASE(
    "devices scsi drive: a sync is not durable at the end of the tape unless the drive says so",
    "[devices]") {
    const TapeRow row = GENERATE(kLto, kBlocks, kCounted);
    TapeStage stage(row);
    stage.load_blank();
    stage.write_all("abc|");
    std::deque<ScsiSense>& next = stage.target.drive(0).next;
    for (const auto& key : {ScsiSense::kMediumError, ScsiSense::kHardwareError,
                            ScsiSense::kNotReady, ScsiSense::kUnitAttention}) {
        next.push_back({.key = key, .code = 0x0c00, .end_of_medium = true});
        REQUIRE(stage.sync().error().code == Errc::kIo);
    }
    next.push_back({.key = ScsiSense::kMediumError, .deferred = true, .end_of_medium = true});
    REQUIRE(stage.sync().error().code == Errc::kIo);
    next.push_back({.key = ScsiSense::kVolumeOverflow, .code = 0x0002, .end_of_medium = true});
    REQUIRE(stage.sync() == TapeRoom::kFull);

    // Nothing of this has made anything durable, so that the next sync is sent, too.
    stage.target.drive(0).codes.clear();
    REQUIRE(stage.sync().has_value());
    REQUIRE(count_of(stage.target.drive(0).codes, ScsiCode::kWriteFilemarks) == 1);
}

TEST_CASE("devices scsi drive: a sync behind the early warning says that the end is near",
          "[devices]") {
    const auto key = GENERATE(ScsiSense::kNoSense, ScsiSense::kRecovered);
    TapeStage stage(kLto);
    stage.load_blank();
    stage.write_all("abc|");
    stage.target.drive(0).executes_next = true;
    stage.target.drive(0).next.push_back({.key = key, .code = 0x0002, .end_of_medium = true});

    REQUIRE(stage.sync() == TapeRoom::kEarlyWarning);

    REQUIRE(stage.image.at(kDriveAddress)->durable_count() == 4);
    stage.target.drive(0).codes.clear();
    REQUIRE(stage.sync() == TapeRoom::kEarlyWarning);
    REQUIRE(stage.target.drive(0).codes.empty());
}

TEST_CASE("devices scsi drive: filemarks that a drive has only taken are durable after a sync",
          "[devices]") {
    TapeStage stage(kLto);
    stage.load_blank();
    stage.write_all("abc");
    stage.target.drive(0).codes.clear();
    stage.target.drive(0).executes_next = true;
    stage.target.drive(0).next.push_back(
        {.key = ScsiSense::kVolumeOverflow, .code = 0x0002, .end_of_medium = true});

    REQUIRE(stage.marks(1, TapeDrive::Marks::kDurable) == TapeRoom::kEarlyWarning);

    REQUIRE(count_of(stage.target.drive(0).codes, ScsiCode::kWriteFilemarks) == 2);
    REQUIRE(stage.content() == "abc|.");
}

TEST_CASE("devices scsi drive: commands may take as long as the drive says", "[devices]") {
    TapeStage stage(kLto);
    stage.load_blank();
    REQUIRE(stage.write("a").has_value());
    REQUIRE(stage.target.drive(0).last_timeout == Duration(900s));
    REQUIRE(stage.locate(0).has_value());
    REQUIRE(stage.target.drive(0).last_timeout == Duration(14'000s));
    REQUIRE(stage.read() == "a");
    REQUIRE(stage.target.drive(0).last_timeout == Duration(1500s));
}

TEST_CASE("devices scsi drive: no LOCATE: blocks are found by filemarks", "[devices]") {
    TapeStage stage(kCounted);
    stage.load_blank();
    stage.write_all("abc|de|f|");
    REQUIRE(stage.unload().has_value());
    REQUIRE(stage.load().has_value());
    std::vector<std::uint8_t>& codes = stage.target.drive(0).codes;
    codes.clear();
    // The first time everything before is read.
    REQUIRE(stage.locate(8).has_value());
    REQUIRE(count_of(codes, ScsiCode::kRead) == 8);
    REQUIRE(stage.position() == TapePosition{.block = 8, .filemarks = 2});
    REQUIRE(stage.rest() == "|.");
    codes.clear();

    REQUIRE(stage.locate(5).has_value());

    REQUIRE(count_of(codes, ScsiCode::kRead) == 0);
    REQUIRE(count_of(codes, ScsiCode::kRewind) == 1);
    REQUIRE(count_of(codes, ScsiCode::kSpace) == 2);
    REQUIRE(count_of(codes, ScsiCode::kLocate16) == 0);
    REQUIRE(stage.rest() == "e|f|.");
}

TEST_CASE("devices scsi drive: filemarks are counted from one to the next", "[devices]") {
    TapeStage stage(kBlocks);
    stage.load_blank();
    stage.write_all("abc|de||f");
    REQUIRE(stage.unload().has_value());
    REQUIRE(stage.load().has_value());
    std::vector<std::uint8_t>& codes = stage.target.drive(0).codes;
    codes.clear();

    stage.to_end();

    REQUIRE(stage.position() == TapePosition{.block = 9, .filemarks = 3});
    REQUIRE(count_of(codes, ScsiCode::kRead) == 0);
    REQUIRE(count_of(codes, ScsiCode::kSpace) == 4);
}

TEST_CASE("devices scsi drive: what an earlier process has loaded is given back", "[devices]") {
    TapeStage stage(kLto);
    const auto home = stage.add({.barcode = "A00001L9"});
    REQUIRE(stage.move(home, kDriveAddress).has_value());
    REQUIRE(stage.load().has_value());

    stage.kill();

    REQUIRE(stage.move(kDriveAddress, home).has_value());
    REQUIRE(stage.element(home).full);
}

TEST_CASE("devices scsi changer: reports that are too short are read as far as they go",
          "[devices]") {
    TapeStage stage(kLto);
    const auto address = stage.add({.barcode = "A00001L9"});
    stage.target.robot().cuts_reports = true;

    REQUIRE(stage.inventory().size() == 12);

    REQUIRE(stage.element(address).barcode == "A00001L9");
}

TEST_CASE("devices scsi changer: a changer that tells no accessibility is believed to have it",
          "[devices]") {
    TapeStage stage(kLto);
    const auto address = stage.add({.barcode = "A00001L9"});
    REQUIRE(stage.element(address).accessible);
    stage.target.robot().tells_access = false;

    REQUIRE(stage.element(address).accessible);
}

TEST_CASE("devices scsi changer: drives are matched in order if the changer does not tell them",
          "[devices]") {
    TapeStage stage(kLto);
    stage.target.robot().tells_drives = false;
    stage.kill();

    REQUIRE(stage.element(kDriveAddress).drive_serial == stage.drive(0).serial());
    REQUIRE(stage.element(kDriveAddress + 1).drive_serial == stage.drive(1).serial());
}

TEST_CASE("devices scsi changer: it looks at its elements if it must, and repeats after changes",
          "[devices]") {
    TapeStage stage(kLto);
    const auto address = stage.add({.barcode = "A00001L9"});
    stage.target.robot().must_look = true;
    stage.target.robot().next = {attention(0x2900), attention(0x2801)};

    REQUIRE(stage.element(address).full);
    REQUIRE(count_of(stage.target.robot().codes, ScsiCode::kInitializeElementStatus) == 1);
    stage.target.robot().next = {attention(0x2801)};
    REQUIRE(stage.move(address, kDriveAddress).has_value());
    stage.target.robot().next = {{.key = ScsiSense::kNotReady, .code = 0x0418}};
    REQUIRE(stage.move(kDriveAddress, address).error().code == Errc::kBusy);
    REQUIRE(stage.element(kDriveAddress).full);
}

TEST_CASE("devices scsi library: devices of another kind are refused", "[devices]") {
    TapeStage stage(kLto);
    auto ports = stage.target.ports();
    std::swap(ports.changer, ports.drives[0]);
    ScsiLibrary library(stage.harness.reactor(), stage.offload(), std::move(ports),
                        {.name = "library"});

    REQUIRE(stage.run(library.open()).error().code == Errc::kUnsupported);
}

TEST_CASE("devices scsi library: a drive twice is refused", "[devices]") {
    TapeStage stage(kLto);
    auto ports = stage.target.ports();
    ports.drives[1] = std::move(stage.target.ports().drives[0]);
    ScsiLibrary library(stage.harness.reactor(), stage.offload(), std::move(ports),
                        {.name = "library"});

    REQUIRE(stage.run(library.open()).error().code == Errc::kInvalid);
}

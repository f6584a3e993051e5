// Goal: what a writer puts on a tape is as documented, and comes back; where it cannot go on,
// nothing that was complete is lost, and it never writes to a cartridge that is another one.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "store/tape/block_reader.h"
#include "store/tape/tape_writer.h"
#include "tests/catch.h"
#include "tests/store/tape/tape_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

// A letter for each record: a label's first, 'd' for a block of data, '|' for a filemark.
std::string shape(TapeStage& stage) {
    std::string out;
    for (const RecordBytes& record : stage.records()) {
        if (record.empty()) {
            out += '|';
        } else {
            out += record.size() == kTapeLabelBytes ? static_cast<char>(record[0]) : 'd';
        }
    }
    return out;
}

Task<Result<TapeEntry>> add(TapeWriter* writer, Member member, MemberSource* source) {
    const auto begun = co_await writer->begin_file(TapeFileKind::kObjects, 9, kTapeDay);
    if (!begun) co_return std::unexpected(begun.error());
    co_return co_await writer->add(std::move(member), source);
}

}  // namespace

TEST_CASE("store tape writer: a file is three labels, data and three labels", "[store][tape]") {
    TapeStage stage;
    REQUIRE(stage.format_tape().has_value());
    REQUIRE(shape(stage) == "VH|");
    REQUIRE(stage.run(stage.writer->open({})).has_value());
    REQUIRE(stage.write_file(1, {{1, 600'000}}).has_value());
    REQUIRE(shape(stage) == "VHHU|ddd|EEU|");
    REQUIRE(stage.write_file(2, {{2, 10}, {3, 0}, {4, 5'000}}).has_value());
    REQUIRE(stage.run(stage.writer->sync()).has_value());

    REQUIRE(shape(stage) == "VHHU|ddd|EEU|HHU|d|EEU|");
    REQUIRE(stage.writer->end() == TapeEnd{.files = 2, .block = stage.cartridge().count()});
    REQUIRE(stage.writer->durable_end() == stage.writer->end());
    // All blocks but the last one are full, and user data begins at a multiple of 4096.
    const auto records = stage.records();
    REQUIRE(records[5].size() == 262'144);
    REQUIRE(records[7].size() % 512 == 0);
    const auto bytes = some_bytes(1, 600'000);
    REQUIRE(std::equal(bytes.begin(), bytes.begin() + 1000, records[5].begin() + 4096));
}

TEST_CASE("store tape writer: what is written comes back", "[store][tape]") {
    const std::uint64_t size = GENERATE(0U, 1U, 511U, 512U, 4'095U, 4'096U, 4'097U, 258'048U,
                                        258'049U, 262'144U, 1'000'000U, 1'048'576U);
    CAPTURE(size);
    TapeStage stage;
    stage.start();
    const auto entries = stage.write_file(1, {{1, size}, {2, 3}, {3, size}});
    REQUIRE(entries.has_value());
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    stage.reload();

    for (std::uint64_t i = 0; i < 3; ++i) {
        const auto read = stage.read((*entries)[i]);
        REQUIRE(read.has_value());
        REQUIRE(*read == some_bytes(i + 1, i == 1 ? 3 : size));
    }
}

TEST_CASE("store tape writer: a piece of an object says where it belongs", "[store][tape]") {
    TapeStage stage;
    stage.start();
    Member member = some_member(1, 5'000);
    member.offset = 1ULL << 36;
    member.object_bytes = (1ULL << 36) + 5'000;
    BytesSource source(some_bytes(1, 5'000));
    const auto entry = stage.run(add(stage.writer.get(), member, &source));
    REQUIRE(entry.has_value());
    REQUIRE(stage.run(stage.writer->end_file()).has_value());

    FoundEntries found;
    REQUIRE(stage.recover(found).has_value());
    REQUIRE(found.entries.size() == 1);
    REQUIRE(found.entries.begin()->second == *entry);
    REQUIRE(found.entries.begin()->second.member.offset == 1ULL << 36);
}

TEST_CASE("store tape writer: the next file replaces one that met the end", "[store][tape]") {
    TapeStage stage({.capacity_bytes = 3'000'000});
    stage.start();
    const auto first = stage.write_file(1, {{1, 1'500'000}});
    REQUIRE(first.has_value());
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    const auto second = stage.write_file(2, {{2, 1'500'000}});
    REQUIRE_FALSE(second.has_value());
    REQUIRE(second.error().code == Errc::kNoSpace);
    REQUIRE_FALSE(stage.writer->failed());
    REQUIRE_FALSE(stage.writer->file_open());
    REQUIRE(stage.writer->end().files == 1);

    const auto third = stage.write_file(3, {{3, 100'000}});
    REQUIRE(third.has_value());
    REQUIRE(stage.write_index_file({(*first)[0], (*third)[0]}).has_value());
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    REQUIRE(stage.read((*first)[0]) == some_bytes(1, 1'500'000));
    REQUIRE(stage.read((*third)[0]) == some_bytes(3, 100'000));
    REQUIRE(shape(stage).ends_with("|EEU|HHU|d|EEU|HHU|d|EEU|"));
}

TEST_CASE("store tape writer: a full tape still takes its index", "[store][tape]") {
    TapeStage stage({.capacity_bytes = 3'000'000});
    stage.start();
    std::vector<TapeEntry> entries;
    for (std::uint64_t number = 1;; ++number) {
        const auto written = stage.write_file(number, {{number, 100'000}});
        if (!written) break;
        entries.push_back((*written)[0]);
        REQUIRE(number < 100);
    }
    REQUIRE(stage.writer->end().files >= 15);

    REQUIRE(stage.write_index_file(entries).has_value());
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    FoundEntries found;
    const auto recovered = stage.recover(found);
    REQUIRE(recovered.has_value());
    REQUIRE(recovered->files_read == 1);
    REQUIRE(found.entries.size() == entries.size());
}

TEST_CASE("store tape writer: a failed write puts all since the last sync in doubt",
          "[store][tape]") {
    TapeStage stage;
    stage.start();
    REQUIRE(stage.write_file(1, {{1, 10}}).has_value());
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    stage.drive().inject(devices::TapeFault::kLateWrite);
    REQUIRE(stage.write_file(2, {{2, 10}}).has_value());

    REQUIRE(stage.run(stage.writer->sync()).error().code == Errc::kIo);
    REQUIRE(stage.writer->failed());
    REQUIRE(stage.writer->durable_end().files == 1);
    REQUIRE(stage.writer->end().files == 2);
}

TEST_CASE("store tape writer: bytes that are not those of the checksums stay off the tape",
          "[store][tape]") {
    TapeStage stage;
    stage.start();
    BytesSource source(some_bytes(1, 300'000));
    source.damage_at(299'999);
    const auto entry = stage.run(add(stage.writer.get(), some_member(1, 300'000), &source));
    REQUIRE(entry.error().code == Errc::kCorrupt);
    REQUIRE_FALSE(stage.writer->failed());
    REQUIRE_FALSE(stage.writer->file_open());

    const auto other = stage.write_file(2, {{2, 10}});
    REQUIRE(other.has_value());
    REQUIRE((*other)[0].file.number == 1);
    REQUIRE(stage.read((*other)[0]) == some_bytes(2, 10));
}

TEST_CASE("store tape writer: nothing is written to another cartridge", "[store][tape]") {
    const CartridgeKind kind = GENERATE(CartridgeKind::kBlank, CartridgeKind::kOtherBarcode,
                                        CartridgeKind::kOtherNode, CartridgeKind::kOtherGeneration,
                                        CartridgeKind::kForeign, CartridgeKind::kCleaning);
    CAPTURE(describe_kind(kind));
    TapeStage stage;
    if (kind != CartridgeKind::kBlank) REQUIRE(stage.format_tape().has_value());
    if (kind == CartridgeKind::kOtherBarcode) stage.identity.vsn = *Vsn::parse("FPD002");
    if (kind == CartridgeKind::kOtherNode) stage.identity.node[0] = std::byte{1};
    if (kind == CartridgeKind::kOtherGeneration) stage.identity.generation = 4;
    if (kind == CartridgeKind::kForeign) {
        auto label = volume_label(some_identity());
        label.implementation = "CASTOR 2.1.12";
        const auto bytes = encode_volume_label(label);
        auto records = stage.records();
        records[0].assign(bytes.begin(), bytes.end());
        stage.set_records(records);
    }
    stage.cartridge().info().cleaning = kind == CartridgeKind::kCleaning;
    stage.reload();
    const auto before = stage.records();

    const auto found = stage.run(inspect(&stage.drive(), stage.identity));
    REQUIRE(found.has_value());
    REQUIRE(found->kind == kind);
    REQUIRE(stage.run(stage.writer->open({})).error().code == Errc::kInvalid);
    FoundEntries entries;
    REQUIRE(stage.recover(entries).error().code == Errc::kInvalid);
    REQUIRE(stage.records() == before);
    REQUIRE(stage.drive().figures().written_bytes == 0);
}

TEST_CASE("store tape writer: foreign beginnings are told from blank ones", "[store][tape]") {
    TapeStage stage;
    const std::size_t size = GENERATE(0U, 80U, 512U, 1'048'576U);  // 0: a filemark.
    stage.set_records({RecordBytes(size, std::byte{'x'})});

    const auto found = stage.run(inspect(&stage.drive(), stage.identity));

    REQUIRE(found.has_value());
    REQUIRE(found->kind == CartridgeKind::kForeign);
    REQUIRE_FALSE(found->label.has_value());
}

TEST_CASE("store tape writer: a label that cannot be read is nobody's", "[store][tape]") {
    TapeStage stage;
    REQUIRE(stage.format_tape().has_value());
    stage.cartridge().make_unreadable(0);
    stage.reload();

    const auto found = stage.run(inspect(&stage.drive(), stage.identity));

    REQUIRE(found.has_value());
    REQUIRE(found->kind == CartridgeKind::kUnreadable);
}

TEST_CASE("store tape writer: a write-protected tape is neither formatted nor opened",
          "[store][tape]") {
    TapeStage stage;
    REQUIRE(stage.format_tape().has_value());
    stage.cartridge().info().write_protected = true;
    stage.reload();

    REQUIRE(stage.format_tape().error().code == Errc::kDenied);
    REQUIRE(stage.run(stage.writer->open({})).error().code == Errc::kDenied);
    REQUIRE(stage.drive().figures().written_bytes == 0);
}

TEST_CASE("store tape writer: a tape that is not as its catalogue says is not written to",
          "[store][tape]") {
    TapeStage stage;
    stage.start();
    REQUIRE(stage.write_file(1, {{1, 10}}).has_value());
    const TapeEnd one = stage.writer->end();
    REQUIRE(stage.write_file(2, {{2, 10}}).has_value());
    const TapeEnd two = stage.writer->end();
    REQUIRE(stage.run(stage.writer->sync()).has_value());

    stage.reload();
    REQUIRE(stage.run(stage.writer->open(one)).error().code == Errc::kCorrupt);
    REQUIRE(stage.run(stage.writer->open({})).error().code == Errc::kCorrupt);
    REQUIRE(stage.run(stage.writer->open({.files = 2, .block = two.block - 1, .index = {}}))
                .error()
                .code == Errc::kCorrupt);
    REQUIRE(
        stage.run(stage.writer->open({.files = 3, .block = two.block, .index = {}})).error().code ==
        Errc::kCorrupt);
    REQUIRE(stage.run(stage.writer->open(two)).has_value());
    REQUIRE(stage.drive().figures().written_bytes == 0);
}

TEST_CASE("store tape reader: what differs from the catalogue is named", "[store][tape]") {
    TapeStage stage;
    stage.start();
    const auto entries = stage.write_file(1, {{1, 300'000}, {2, 3}});
    const auto more = stage.write_file(2, {{3, 30}});
    REQUIRE(entries.has_value());
    REQUIRE(more.has_value());
    const auto why = [&](auto change) {
        TapeEntry entry = (*more)[0];
        change(entry);
        const auto read = stage.read(entry);
        REQUIRE_FALSE(read.has_value());
        REQUIRE(read.error().code == Errc::kCorrupt);
        return std::string(read.error().context);
    };

    REQUIRE(why([](TapeEntry& e) { e.file.file_id = 8; }) == "the file id in HDR1 is another one");
    REQUIRE(why([&](TapeEntry& e) { e.file.number = 3; }) ==
            "the file number in UHL1 is another one");
    REQUIRE(why([](TapeEntry& e) { e.file.block = 1'000; }) == "the tape ends too early");
    REQUIRE(why([](TapeEntry& e) { e.file.block += 1; }).starts_with("there is no label"));
    REQUIRE(why([](TapeEntry& e) { e.position = 512; }) == "the header of a pax archive");
    REQUIRE(why([](TapeEntry& e) { e.member.fid.low = 1; }) == "the object is another one");
    REQUIRE(why([](TapeEntry& e) { e.member.version = 1; }) ==
            "the object's version is another one");
    REQUIRE(why([](TapeEntry& e) { e.member.offset = 4'096; }) ==
            "the offset in the object differs");
    REQUIRE(why([](TapeEntry& e) { e.member.size_bytes = 31; }) == "the size of the copy differs");
    REQUIRE(why([](TapeEntry& e) { e.member.checksum ^= 1; }) ==
            "the checksum of the copy differs");
    stage.identity.vsn = *Vsn::parse("FPD002");
    REQUIRE(why([](TapeEntry&) {}) == "the VSN in HDR1 is another one");
    stage.identity = some_identity();
    stage.identity.generation = 4;
    REQUIRE(why([](TapeEntry&) {}) == "a file from before the cartridge was formatted");
}

TEST_CASE("store tape reader: a changed byte of the data or the list is found", "[store][tape]") {
    TapeStage stage;
    stage.start();
    const auto entries = stage.write_file(1, {{1, 10'000}});
    REQUIRE(entries.has_value());
    const auto records = stage.records();
    // The bytes begin behind the header; the list behind its own header.
    const std::size_t data = 4'096;
    const std::size_t list = data + 10'240 + 512;
    for (const std::size_t at : {data, data + 9'999, list, list + 26}) {
        CAPTURE(at);
        auto changed = records;
        changed[5][at] ^= std::byte{0x01};
        stage.set_records(changed);
        REQUIRE(stage.read((*entries)[0]).error().code == Errc::kCorrupt);
    }
}

TEST_CASE(
    "store tape reader: a copy in a file is reached by reading on, or by a locate if it is far",
    "[store][tape]") {
    const bool is_far = GENERATE(false, true);
    const std::uint64_t size_bytes = is_far ? kTapeReadOnBytes + 20'000'000 : 20'000'000;
    TapeStage stage;
    stage.start();
    const auto entries = stage.write_file(1, {{1, size_bytes}, {2, 30}});
    REQUIRE(entries.has_value());
    REQUIRE(stage.run(stage.writer->sync()).has_value());
    const devices::DriveFigures before = stage.drive().figures();

    REQUIRE(stage.read((*entries)[1]) == some_bytes(2, 30));
    const devices::DriveFigures& after = stage.drive().figures();
    // To the labels of the file, and on.
    CHECK(after.locates - before.locates == (is_far ? 2 : 1));
    const std::uint64_t read_bytes = after.read_bytes - before.read_bytes;
    CHECK((is_far ? read_bytes < 600'000 : read_bytes > size_bytes));
}

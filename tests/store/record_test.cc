// Goal: records come back as they were written, bytes that are none are refused, and what cleaning
// leaves of a record is never longer than it was.

#include "store/record.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/random.h"
#include "store/copy.h"
#include "store/schema.h"
#include "tests/catch.h"

namespace fopd::store {
namespace {

constexpr Fid kFid{.high = 0x0003'0000'0000'0001, .low = 42};

std::vector<std::uint32_t> checksums(std::uint32_t count) {
    std::vector<std::uint32_t> all(count);
    for (std::uint32_t i = 0; i < count; ++i) all[i] = 0x1000 + i;
    return all;
}

Record only(const RecordWriter& writer) {
    RecordReader reader(writer.bytes());
    const auto record = reader.next();
    REQUIRE(record.has_value());
    REQUIRE(record->has_value());
    return **record;
}

std::string hex(Bytes bytes) {
    std::string text;
    for (const std::byte each : bytes) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        text += kDigits[std::to_integer<unsigned>(each) >> 4];
        text += kDigits[std::to_integer<unsigned>(each) & 15];
    }
    return text;
}

TEST_CASE("record: an extent is written as docs/formats/record.md shows it", "[store]") {
    RecordWriter writer;
    const std::vector<std::uint32_t> sums{0x11223344, 0xaabbccdd};

    writer.extent(kFid, {.first = 5, .block = 4096, .checksums = sums});

    REQUIRE(hex(writer.bytes()) ==
            "02002d00"
            "0100000000000300"
            "2a00000000000000"
            "0500000000000000"
            "0010000000000000"
            "00"
            "44332211ddccbbaa");
}

TEST_CASE("record: a copy is written as docs/formats/record.md shows it", "[store]") {
    const Copy copy{.fid = kFid,
                    .length = 100'000,
                    .version = 3,
                    .cartridge = {.vsn = {'F', 'P', '0', '0', '0', '7'}, .generation = 2},
                    .position = {.file = 9, .member = 4096},
                    .block = 1234,
                    .checksum = 0x11223344,
                    .written_s = 1'800'000'000};
    RecordWriter writer;
    ValueBuffer value;

    writer.put(copy_key(key_of(copy)), write_copy(value, copy));

    REQUIRE(hex(writer.bytes()) ==
            "01004b001f00"
            "630003000000000001000000000000002a0000000000000000465030303037"
            "a08601000000001000000000d20400000000030000000000"
            "443322110900000000d2496b0200");
    const Record record = only(writer);
    REQUIRE(read_copy(record.key, record.value) == copy);
}

TEST_CASE("record: what was written is read, in order", "[store]") {
    RecordWriter writer;
    ValueBuffer value;
    const auto sums = checksums(3);
    writer.put(Key::object(kFid), write_object(value, {.size_bytes = 7, .owner = "alice"}));
    writer.extent(kFid, {.first = 1, .block = 9, .checksums = sums});
    writer.punch(kFid, 4, kObjectBlocksMax - 4);
    writer.remove(kFid);
    writer.commit(Key::object(kFid), write_object(value, {.size_bytes = 8}));
    writer.forget(Key::reply({.request_number = 3}));
    writer.clear_range(kFid, 6, 11);

    std::vector<RecordKind> kinds;
    RecordReader reader(writer.bytes());
    std::vector<Record> records;
    for (;;) {
        const auto record = reader.next();
        REQUIRE(record.has_value());
        if (!record->has_value()) break;
        records.push_back(**record);
        kinds.push_back((*record)->kind);
    }

    REQUIRE(writer.count() == 7);
    REQUIRE(kinds == std::vector{RecordKind::kPut, RecordKind::kExtent, RecordKind::kPunch,
                                 RecordKind::kRemove, RecordKind::kCommit, RecordKind::kForget,
                                 RecordKind::kClear});
    REQUIRE(read_object(records[0].value)->owner == "alice");
    REQUIRE(records[1].block == 9);
    REQUIRE(records[2].count == kObjectBlocksMax - 4);
    REQUIRE(records[3].fid == kFid);
    REQUIRE(read_object(records[4].value)->size_bytes == 8);
    REQUIRE(read_reply_key(records[5].key)->request_number == 3);
    REQUIRE(records[6].first == 6);
    REQUIRE(records[6].count == 11);
}

TEST_CASE("record: version 2 takes what version 1 said as it is", "[store]") {
    RecordWriter writer;
    const auto sums = checksums(3);
    writer.extent(kFid, {.first = 1, .block = 9, .checksums = sums});
    writer.punch(kFid, 4, kObjectBlocksMax - 4);
    SchemaUpgrade upgrade(kSchema);

    const auto upgraded = upgrade.upgraded(1, {.bytes = writer.bytes(), .count = writer.count()});

    REQUIRE(upgraded.has_value());
    REQUIRE(hex(upgraded->bytes) == hex(writer.bytes()));
    REQUIRE(upgraded->count == 2);
    REQUIRE(upgrade.upgraded(kSchema.version + 1, {}).error().code == Errc::kUnsupported);
}

TEST_CASE("record: bytes that are no record are refused", "[store]") {
    RecordWriter writer;
    const auto sums = checksums(2);
    writer.extent(kFid, {.first = 5, .block = 4096, .checksums = sums});
    const std::vector<std::byte> good(writer.bytes().begin(), writer.bytes().end());
    const auto refused = [](const std::vector<std::byte>& bytes) {
        RecordReader reader(bytes);
        const auto record = reader.next();
        return !record.has_value() && record.error().code == Errc::kCorrupt;
    };
    const auto changed = [&good](std::size_t at, unsigned value) {
        auto bytes = good;
        bytes[at] = std::byte{static_cast<unsigned char>(value)};
        return bytes;
    };

    for (std::size_t size = 1; size < good.size(); ++size) {
        CAPTURE(size);
        REQUIRE(refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}));
    }
    REQUIRE(refused(changed(0, 0)));      // A kind that is none.
    REQUIRE(refused(changed(0, 7)));      // One of tomorrow.
    REQUIRE(refused(changed(1, 1)));      // Not zero.
    REQUIRE(refused(changed(2, 3)));      // Shorter than its head.
    REQUIRE(refused(changed(27, 0x01)));  // Beyond the largest object.
    REQUIRE(refused(changed(35, 0xff)));  // Beyond every disk.
    REQUIRE(refused(changed(36, 1)));     // Checksums that do not come out even.
}

TEST_CASE("record: dead blocks ascend and are within the extent", "[store]") {
    RecordWriter writer;
    const auto sums = checksums(8);
    writer.extent(kFid, {.first = 5, .block = 4096, .checksums = sums});
    ExtentBlocks live;
    for (const std::size_t each : {0U, 1U, 3U, 4U, 7U}) live.set(each);
    RecordWriter rest;
    rest.rest_of_extent(only(writer), live);
    std::vector<std::byte> bytes(rest.bytes().begin(), rest.bytes().end());
    const std::size_t dead = kRecordHeadBytes + 33;
    REQUIRE(std::to_integer<int>(bytes[dead]) == 2);

    const auto refused = [&bytes] {
        RecordReader reader(bytes);
        return !reader.next().has_value();
    };
    REQUIRE_FALSE(refused());
    bytes[dead] = std::byte{6};  // Behind its successor.
    REQUIRE(refused());
    bytes[dead] = std::byte{2};
    bytes[dead + 2] = std::byte{8};  // Outside.
    REQUIRE(refused());
}

TEST_CASE("record: the rest of an extent describes fewer blocks in no more bytes", "[store]") {
    core::Random random(7);
    for (int i = 0; i < 300; ++i) {
        const auto count = static_cast<std::uint32_t>(1 + random.below(kExtentBlocksMax));
        const auto sums = checksums(count);
        RecordWriter writer;
        writer.extent(kFid, {.first = 100, .block = 7000, .checksums = sums});
        std::vector<std::byte> before(writer.bytes().begin(), writer.bytes().end());
        ExtentBlocks live;
        for (std::uint32_t block = 0; block < count; ++block) live.set(block);
        while (true) {
            for (std::uint64_t kill = 1 + random.below(count); kill > 0; --kill) {
                live.reset(random.below(count));
            }
            if (live.none()) break;
            RecordReader reader(before);
            const auto record = reader.next();
            REQUIRE(record.has_value());
            // Its first block may have gone before.
            const std::uint64_t shift = (*record)->first - 100;
            RecordWriter rest;
            rest.rest_of_extent(**record, live >> shift);

            REQUIRE(rest.bytes().size() <= before.size());
            ExtentBlocks found;
            const Record left = only(rest);
            ExtentRuns runs(left);
            while (const auto run = runs.next()) {
                for (std::uint32_t at = 0; at < run->count(); ++at) {
                    const std::uint64_t block = run->first + at - 100;
                    REQUIRE(run->block + at == 7000 + block);
                    REQUIRE(run->checksums[at] == sums[block]);
                    found.set(block);
                }
            }
            REQUIRE(found == live);
            before.assign(rest.bytes().begin(), rest.bytes().end());
        }
    }
}

}  // namespace
}  // namespace fopd::store

// Goal: replies and objects that an older version wrote are found where this one looks for them.
// Method: the bytes that older versions wrote, by themselves, and in the log of a disk that a
// volume opens.
#include "store/schema.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/virtual_world.h"
#include "devices/disk_image.h"
#include "devices/memory_disk.h"
#include "store/log.h"
#include "store/map_index.h"
#include "store/volume.h"
#include "tests/catch.h"
#include "tests/store/text_bytes.h"

namespace fopd::store {
namespace {

constexpr std::uint64_t kDiskBytes = 16UL << 20;
constexpr ReplyKey kFirst{.client = {{std::byte{0xa}}}, .request_number = 0x0102'0304'0506'0708};

using fopd::store::testing::bytes_of;

std::vector<std::byte> old_key(const ReplyKey& key) {
    std::vector<std::byte> bytes{std::byte{'r'}};
    bytes.insert(bytes.end(), key.client.bytes.begin(), key.client.bytes.end());
    bytes.push_back(std::byte{0xff});  // Of whose it is; it counts no more.
    for (int shift = 56; shift >= 0; shift -= 8) {
        bytes.push_back(static_cast<std::byte>(key.request_number >> shift));
    }
    return bytes;
}

void put_old(RecordWriter& records, const ReplyKey& key, std::string_view reply) {
    std::vector<std::byte> value{std::byte{5}};
    value.resize(8);
    value.insert(value.end(), bytes_of(reply).begin(), bytes_of(reply).end());
    records.put(old_key(key), value);
}

// An object of 1 block, as an older layout has it.
std::vector<std::byte> old_object(std::uint8_t layout, std::uint8_t flags = 0) {
    ValueBuffer buffer;
    const Object object{.size_bytes = 4096, .version = 3, .mode = 0640, .owner = "ann"};
    const Bytes value = write_object(buffer, object);
    std::vector<std::byte> bytes(value.begin(), value.begin() + (layout == 1 ? 56 : 76));
    if (layout == 3) bytes.insert(bytes.end(), {std::byte{2}, {}, {}, {}});
    bytes.insert(bytes.end(), value.begin() + 76, value.end());
    bytes[0] = std::byte{layout};
    bytes[3] = std::byte{flags};
    return bytes;
}

class FirstSegments final : public SegmentSource {
public:
    Result<std::uint32_t> take_segment(SegmentNeed) override {
        return std::unexpected(Error{.code = Errc::kNoSpace});
    }
    void give_back_segment(std::uint32_t /*segment*/) override {}
};

class Nothing final : public ReplayVisitor {
public:
    Task<Result<bool>> data_ok(LogEntry /*entry*/) override { co_return true; }
    Task<Result<void>> replay(LogEntry /*entry*/) override { co_return Result<void>{}; }
};

// A program of version 2 writes this, and ends.
Task<bool> write_log(Log* log, const RecordWriter* records) {
    Nothing nothing;
    ReplayVisitor* const visitor = &nothing;
    std::vector<std::uint32_t> segments{0, 1, 2, 3};
    const auto formatted = co_await log->format(std::move(segments));
    const ReplayOptions everything{};
    const auto opened = co_await log->open(visitor, everything);
    const core::WaitOptions wait{};
    const auto size = static_cast<std::uint32_t>(records->bytes().size());
    auto room = co_await log->reserve(size, wait);
    if (!formatted || !opened || !room) co_return false;
    Commit commit;
    log->begin(commit, std::move(*room), records->bytes(), records->count(), Durability::kBuffered,
               Data::kNone);
    const auto closed = co_await log->close();
    co_return closed.has_value();
}

}  // namespace

TEST_CASE("store schema: replies of version 2 have places, and take no more room", "[store]") {
    RecordWriter old;
    ValueBuffer value;
    put_old(old, kFirst, "done");
    old.forget(old_key(kFirst));
    old.put(Key::object({.high = 1}), write_object(value, {.size_bytes = 7}));

    SchemaUpgrade upgrade(kSchema);
    const auto records = upgrade.upgraded(2, {.bytes = old.bytes(), .count = old.count()});

    REQUIRE(records.has_value());
    REQUIRE(records->count == 2);
    RecordReader reader(records->bytes);
    const auto reply = reader.next();
    REQUIRE(reply.has_value());
    REQUIRE((*reply)->kind == RecordKind::kPut);
    const auto read = read_reply((*reply)->key, (*reply)->value);
    REQUIRE(read.has_value());
    CHECK(read->key == kFirst);
    CHECK(read->made == Duration(5));
    CHECK(std::ranges::equal(read->reply, bytes_of("done")));
    RecordWriter alone;
    put_old(alone, kFirst, "done");
    CHECK(reader.bytes().size() == alone.bytes().size());
    const auto object = reader.next();
    REQUIRE(object.has_value());
    CHECK(read_object((*object)->value)->size_bytes == 7);
}

TEST_CASE("store schema: an invalid reply of version 2 is corrupt", "[store]") {
    SchemaUpgrade upgrade(kSchema);
    RecordWriter records;
    records.put(Key::reply(kFirst), old_key(kFirst));
    const auto read = upgrade.upgraded(2, {.bytes = records.bytes(), .count = records.count()});
    CHECK(read.error().code == Errc::kCorrupt);
}

TEST_CASE("store schema: a disk of version 2 remembers the latest reply of each place", "[store]") {
    core::VirtualWorld world(7);
    core::Random random(7);
    const auto reactor = world.make_reactor();
    devices::DiskImage image(kDiskBytes);
    devices::MemoryDisk disk(*reactor, image, {.seed = 7});
    RecordWriter records;
    const ReplyKey later{.client = kFirst.client, .request_number = kFirst.request_number + 1024};
    const ReplyKey other{.client = kFirst.client, .request_number = 9};
    // Cleaning has written an older one again behind a later one.
    put_old(records, later, "later");
    put_old(records, kFirst, "first");
    put_old(records, other, "other");
    records.forget(old_key(kFirst));
    {
        FirstSegments segments;
        Log log(*reactor, disk, segments,
                {.schema = {.version = 2, .steps = std::span(kSchemaSteps).first(1)},
                 .segment_blocks = 64,
                 .entry_blocks_max = 16});
        const auto written = world.run(*reactor, write_log(&log, &records));
        REQUIRE(written == true);
    }
    MapImage index_image;
    MapIndex index({.reactor = *reactor, .random = random}, index_image);
    core::NullEventSink events;
    Volume volume({.reactor = *reactor, .device = disk, .index = index, .events = events},
                  {.segment_blocks = 64});
    const auto opened = world.run(*reactor, volume.open(Volume::Mode::kServe));
    REQUIRE(opened.has_value());
    REQUIRE(opened->has_value());
    CHECK(volume.map().find_reply(kFirst)->value().key == later);
    CHECK(std::ranges::equal(volume.map().find_reply(later)->value().reply, bytes_of("later")));
    CHECK(std::ranges::equal(volume.map().find_reply(other)->value().reply, bytes_of("other")));
    volume.map().release();
    const auto closed = world.run(*reactor, volume.close());
    REQUIRE(closed.has_value());
    CHECK(closed->has_value());
}

TEST_CASE("store schema: objects that older versions wrote are read from a disk", "[store]") {
    core::VirtualWorld world(7);
    core::Random random(7);
    const auto reactor = world.make_reactor();
    devices::DiskImage image(kDiskBytes);
    devices::MemoryDisk disk(*reactor, image, {.seed = 7});
    const auto fid_of = [](std::uint64_t number) { return Fid{.high = 3ULL << 48, .low = number}; };
    const auto [version, layouts] =
        GENERATE(std::pair(2U, 1U), std::pair(3U, 2U), std::pair(4U, 3U), std::pair(4U, 4U));
    CAPTURE(version, layouts);
    RecordWriter records;
    for (std::uint8_t layout = 1; layout <= std::min(layouts, 3U); ++layout) {
        records.put(Key::object(fid_of(layout)), old_object(layout));
    }
    // Version 4 has written released objects so.
    const bool has_released = layouts == 4;
    if (has_released) records.put(Key::object(fid_of(4)), old_object(3, 1));
    {
        FirstSegments segments;
        const auto steps = std::span(kSchemaSteps).first(version - 1);
        Log log(*reactor, disk, segments,
                {.schema = {.version = version, .steps = steps},
                 .segment_blocks = 64,
                 .entry_blocks_max = 16});
        REQUIRE(world.run(*reactor, write_log(&log, &records)) == true);
    }
    MapImage index_image;
    MapIndex index({.reactor = *reactor, .random = random}, index_image);
    core::NullEventSink events;
    Volume volume({.reactor = *reactor, .device = disk, .index = index, .events = events},
                  {.slot = 3, .segment_blocks = 64});
    const auto opened = world.run(*reactor, volume.open(Volume::Mode::kServe));
    REQUIRE(opened.has_value());
    REQUIRE(opened->has_value());

    for (std::uint64_t number = 1; number <= layouts; ++number) {
        CAPTURE(number);
        const auto object = volume.map().find(fid_of(number));
        REQUIRE(object.has_value());
        REQUIRE(object->has_value());
        CHECK((*object)->owner == "ann");
        CHECK((*object)->size_bytes == 4096);
        CHECK((*object)->is_released == (number == 4));
        CHECK((*object)->content_version() == (number < 3 ? 3 : 1));
        CHECK((*object)->collection.empty());
    }
    volume.map().release();
    const auto closed = world.run(*reactor, volume.close());
    REQUIRE(closed.has_value());
    CHECK(closed->has_value());
}

}  // namespace fopd::store

#include <algorithm>
#include <cstring>
#include <map>
#include <variant>

#include "objects/home_volume.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

using Way = WriteSpec::Way;

struct HoldBlocks {
    objects::RangeLocks* locks;
    objects::RangeLock* lock;
    objects::LockRequest request;
};
Task<bool> hold_blocks(HoldBlocks what) {
    const auto locked = co_await what.locks->acquire(*what.lock, what.request, {});
    co_return locked.has_value();
}

}  // namespace

TEST_CASE("reqh objects: what was written is read again, also after a loss of power", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    CHECK(fid.slot() == kFirstSlot);
    const Bytes bytes = pattern(3 * objects::kBlock + 100, 1);
    node.write(fid, 0, bytes);
    CHECK(node.read(fid, 0, 1 << 20) == bytes);

    node.restart();
    CHECK(node.read(fid, 0, 1 << 20) == bytes);
    CHECK(node.stat(fid).size_bytes == bytes.size());
    node.stop();
    node.start();
    CHECK(node.read(fid, 0, 1 << 20) == bytes);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh objects: an object keeps the collection that it was made with", "[reqh]") {
    StoreStage node;
    auto& made =
        node.call({.type = type_of("create"),
                   .body = fop::Create{
                       .name = "a", .slot = kFirstSlot, .mode = 0600, .collection = "run-7"}});
    REQUIRE(made.status() == fop::Status::kDone);
    const fop::Fid fid = std::get<fop::CreateReply>(made.answer->body).fid;
    node.write(fid, 0, pattern(100, 1));
    auto& begun =
        node.call({.type = type_of("upload_begin"),
                   .body = fop::UploadBegin{
                       .name = "b", .slot = kFirstSlot, .mode = 0600, .collection = "run-8"}});
    REQUIRE(begun.status() == fop::Status::kDone);
    const fop::Fid upload = std::get<fop::UploadBeginReply>(begun.answer->body).fid;
    REQUIRE(node.call({.type = type_of("upload_commit"), .body = fop::UploadCommit{.fid = upload}})
                .status() == fop::Status::kDone);

    node.restart();
    // The answer lives as long as the call; each is compared at once.
    CHECK(node.stat(fid).collection == "run-7");
    CHECK(node.stat(upload).collection == "run-8");
    CHECK(node.stat(node.create()).collection.empty());
}

TEST_CASE("reqh objects: holes read as zeros, and a read ends at the object's end", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    node.write(fid, 10 * objects::kBlock + 17, pattern(10, 1));
    const Bytes bytes = node.read(fid, 0, 1 << 20);
    REQUIRE(bytes.size() == 10 * objects::kBlock + 27);
    CHECK(std::ranges::all_of(std::span(bytes).first(10 * objects::kBlock + 17),
                              [](std::byte each) { return each == std::byte{0}; }));
    CHECK(node.read(fid, 10 * objects::kBlock + 27, 100).empty());
    CHECK(node.read(fid, fop::kOffsetMax - 1, 1).empty());
    CHECK(node.stat(fid).allocated_bytes == objects::kBlock);
}

TEST_CASE("reqh objects: many ranges of a fop, inline and through memory", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    const std::vector<fop::Range> ranges{{.offset = 9000, .length = 3000},
                                         {.offset = 0, .length = 0},
                                         {.offset = 100, .length = 50},
                                         {.offset = 150, .length = 4000}};
    const Bytes bytes = pattern(fop::total_bytes(ranges), 2);
    const auto way = GENERATE(Way::kInline, Way::kMemory);
    const WriteSpec write(fid, ranges, bytes);
    REQUIRE(node.call(write.spec(way)).status() == fop::Status::kDone);

    const ReadSpec read(fid, ranges);
    FakeFop& fop = node.call(read.spec(way));
    REQUIRE(fop.status() == fop::Status::kDone);
    CHECK((way == Way::kInline ? fop.answer->payload : fop.target) == bytes);
    const auto& reply = std::get<fop::ReadReply>(fop.answer->body);
    CHECK(reply.bytes == bytes.size());
    CHECK(reply.size_bytes == 12'000);
    CHECK(std::ranges::equal(reply.checksums, checksums_of(ranges, bytes)));
}

TEST_CASE("reqh objects: data larger than a buffer pass through it", "[reqh]") {
    StoreStage node({.buffer_count = 1});
    const fop::Fid fid = node.create();
    const Bytes bytes = pattern(3 * core::kBufferBytes + 5000, 3);
    node.write(fid, 1234, bytes);
    CHECK(node.read(fid, 1234, bytes.size()) == bytes);
    const Bytes more = pattern(2 * core::kBufferBytes, 4);
    node.write(fid, 777, more);
    CHECK(node.read(fid, 777, more.size()) == more);
    CHECK(node.read(fid, 777 + more.size(), 100'000) ==
          Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(777 + more.size() - 1234),
                bytes.begin() + static_cast<std::ptrdiff_t>(777 + more.size() - 1234 + 100'000)));
}

TEST_CASE("reqh objects: appends follow each other, also of odd lengths", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    Bytes all;
    for (std::size_t i = 1; i <= 6; ++i) {
        const Bytes bytes = pattern(i * 3001, i);
        const AppendSpec append(fid, bytes);
        FakeFop& fop = node.call(append.spec(i % 2 == 0 ? Way::kInline : Way::kMemory));
        INFO(fop.answer->words);
        REQUIRE(fop.status() == fop::Status::kDone);
        CHECK(std::get<fop::AppendReply>(fop.answer->body).offset == all.size());
        all.insert(all.end(), bytes.begin(), bytes.end());
    }
    CHECK(node.read(fid, 0, all.size()) == all);
    const Bytes large = pattern(core::kBufferBytes + 100, 9);
    const AppendSpec append(fid, large);
    REQUIRE(node.call(append.spec(Way::kMemory)).status() == fop::Status::kDone);
    CHECK(node.read(fid, all.size(), large.size()) == large);
}

TEST_CASE("reqh objects: an append that is asked for again is done once", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    const AppendSpec append(fid, pattern(5000, 1));
    FopSpec spec = append.spec(Way::kInline);
    spec.number = 77;
    const auto first = std::get<fop::AppendReply>(node.call(spec).answer->body);
    const auto again = std::get<fop::AppendReply>(node.call(spec).answer->body);
    CHECK(again.offset == first.offset);
    CHECK(again.changed.version == first.changed.version);
    node.restart();
    const auto after_restart = std::get<fop::AppendReply>(node.call(spec).answer->body);
    CHECK(after_restart.offset == first.offset);
    CHECK(node.stat(fid).size_bytes == 5000);
    spec.number = 78;
    CHECK(std::get<fop::AppendReply>(node.call(spec).answer->body).offset == 5000);

    FopSpec other{.type = type_of("create"),
                  .body = fop::Create{.slot = kFirstSlot, .mode = 0600},
                  .number = 77};
    CHECK(node.call(other).status() == fop::Status::kMalformed);
}

TEST_CASE("reqh objects: a truncated object has zeros where it grows again", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    const Bytes bytes = pattern(10 * objects::kBlock, 1);
    node.write(fid, 0, bytes);
    REQUIRE(node.call(truncate(fid, 3 * objects::kBlock + 5)).status() == fop::Status::kDone);
    CHECK(node.stat(fid).size_bytes == 3 * objects::kBlock + 5);
    CHECK(node.stat(fid).allocated_bytes == 4 * objects::kBlock);
    REQUIRE(node.call(truncate(fid, 8 * objects::kBlock)).status() == fop::Status::kDone);
    Bytes expected = bytes;
    expected.resize(3 * objects::kBlock + 5);
    expected.resize(8 * objects::kBlock);
    CHECK(node.read(fid, 0, 1 << 20) == expected);
    REQUIRE(node.call(truncate(fid, 0)).status() == fop::Status::kDone);
    CHECK(node.stat(fid).allocated_bytes == 0);
}

TEST_CASE("reqh objects: a punched range is zeros, its neighbours stay", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    Bytes bytes = pattern(10 * objects::kBlock, 1);
    node.write(fid, 0, bytes);
    const auto clear = [&](std::uint64_t offset, std::uint64_t length) {
        FakeFop& fop = node.call(punch(fid, {.offset = offset, .length = length}));
        INFO(fop.answer->words);
        REQUIRE(fop.status() == fop::Status::kDone);
        const std::uint64_t end = std::min<std::uint64_t>(offset + length, bytes.size());
        for (std::uint64_t at = offset; at < end; ++at) bytes[at] = std::byte{0};
        CHECK(node.read(fid, 0, 1 << 20) == bytes);
    };
    clear(100, 50);
    clear(objects::kBlock - 7, 2 * objects::kBlock + 20);
    clear(4 * objects::kBlock, objects::kBlock);
    clear(6 * objects::kBlock, 10);
    clear(9 * objects::kBlock + 1, 10 * objects::kBlock);
    clear(20 * objects::kBlock, objects::kBlock);
    clear(3, 0);
    CHECK(node.stat(fid).size_bytes == bytes.size());
}

TEST_CASE("reqh objects: bytes that are not those of their checksums change nothing", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(objects::kBlock, 1));
    WriteSpec write(fid, {{.offset = 100, .length = 2 * objects::kBlock}},
                    pattern(2 * objects::kBlock, 2));
    write.checksums()[1] ^= 1;
    FakeFop& fop = node.call(write.spec(Way::kInline));
    CHECK(fop.status() == fop::Status::kCorrupt);
    CHECK(node.read(fid, 0, 1 << 20) == pattern(objects::kBlock, 1));
    CHECK(node.stat(fid).version == 2);
}

TEST_CASE("reqh objects: a write whose memory was taken back is cancelled, not corrupt", "[reqh]") {
    StoreStage node({.localities = 2});
    const fop::Fid fid = node.create();
    const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 2));
    FopSpec spec = write.spec(Way::kMemory);
    spec.transfer_time = 10ms;
    const bool is_cancelled = GENERATE(true, false);
    // The home of the object may be another locality than that of the session.
    const std::uint32_t locality = GENERATE(0U, 1U);
    CAPTURE(is_cancelled, locality);
    FakeFop& fop = node.send(std::move(spec), locality);
    std::ranges::fill(fop.source, std::byte{0});

    // Its bytes have arrived, and are wrong.
    node.run_for(15ms);
    REQUIRE_FALSE(fop.transfers.empty());
    if (is_cancelled) fop.cancel_source().cancel();
    node.wait_for(fop);

    REQUIRE(fop.status() == (is_cancelled ? fop::Status::kCancelled : fop::Status::kCorrupt));
    REQUIRE(node.stat(fid).version == 1);
}

TEST_CASE("reqh objects: a damaged block is reported, by object and block, and never returned",
          "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(4 * objects::kBlock, 1));
    auto extents =
        node.volume().map().extents({.high = fid.high, .low = fid.low}, {.first = 2, .count = 1});
    const auto extent = extents.next();
    REQUIRE(extent->has_value());
    node.image().flip_bit((*extent)->block * objects::kBlock + 1000, 3);
    node.volume().map().release();

    const ReadSpec whole(fid, {{.offset = 0, .length = 4 * objects::kBlock}});
    FakeFop& fop = node.call(whole.spec(Way::kMemory));
    CHECK(fop.status() == fop::Status::kCorrupt);
    CHECK(fop.answer->words.starts_with("block 2 of object 0003"));
    CHECK(node.read(fid, 0, 2 * objects::kBlock).size() == 2 * objects::kBlock);
    // A part of it cannot be kept either; a whole block in its place heals it.
    const WriteSpec part(fid, {{.offset = 2 * objects::kBlock, .length = 10}}, pattern(10, 2));
    CHECK(node.call(part.spec(Way::kInline)).status() == fop::Status::kCorrupt);
    CHECK(node.call(truncate(fid, 2 * objects::kBlock + 1)).status() == fop::Status::kCorrupt);
    node.write(fid, 2 * objects::kBlock, pattern(objects::kBlock, 3));
    CHECK(node.read(fid, 2 * objects::kBlock, objects::kBlock) == pattern(objects::kBlock, 3));
}

TEST_CASE("reqh objects: a missing or removed object is not found", "[reqh]") {
    StoreStage node;
    const fop::Fid missing{.high = std::uint64_t{kFirstSlot} << 48 | 1, .low = 99};
    CHECK(node.call({.type = type_of("stat"), .body = fop::Stat{.fid = missing}}).status() ==
          fop::Status::kNotFound);
    const fop::Fid elsewhere{.high = std::uint64_t{0x77} << 48, .low = 99};
    CHECK(node.call({.type = type_of("stat"), .body = fop::Stat{.fid = elsewhere}}).status() ==
          fop::Status::kNotFound);

    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(objects::kBlock, 1));
    FopSpec removal{.type = type_of("delete"), .body = fop::Delete{.fid = fid}, .number = 500};
    CHECK(node.call(removal).status() == fop::Status::kDone);
    CHECK(node.call(removal).status() == fop::Status::kDone);
    CHECK(node.call({.type = type_of("stat"), .body = fop::Stat{.fid = fid}}).status() ==
          fop::Status::kNotFound);
    removal.number = 501;
    CHECK(node.call(removal).status() == fop::Status::kNotFound);
    node.restart();
    CHECK(node.call({.type = type_of("stat"), .body = fop::Stat{.fid = fid}}).status() ==
          fop::Status::kNotFound);
}

TEST_CASE("reqh objects: pools", "[reqh]") {
    StoreStage node;
    FopSpec spec{.type = type_of("create"),
                 .body = fop::Create{.slot = kFirstSlot, .mode = 0600},
                 .pool = "none"};
    CHECK(node.call(spec).status() == fop::Status::kWrongPool);
    spec.pool = "slow";
    CHECK(node.call(spec).status() == fop::Status::kWrongPool);
    const fop::Fid fid = node.create();
    FopSpec stat{.type = type_of("stat"), .body = fop::Stat{.fid = fid}, .pool = "fast"};
    CHECK(node.call(stat).status() == fop::Status::kDone);
    stat.pool = "slow";
    CHECK(node.call(stat).status() == fop::Status::kWrongPool);
}

TEST_CASE("reqh objects: owner, group and mode decide access", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    FopSpec stat{.type = type_of("stat"), .body = fop::Stat{.fid = fid}};
    stat.rights = fop::kRead | fop::kWrite;
    stat.principal = "bob";
    CHECK(node.call(stat).status() == fop::Status::kDenied);

    FopSpec set{.type = type_of("set_attributes"),
                .body = fop::SetAttributes{
                    .fid = fid,
                    .group = "crew",
                    .mode = 0640,
                    .which = fop::SetAttributes::kGroup | fop::SetAttributes::kMode}};
    set.rights = fop::kRead | fop::kWrite;
    CHECK(node.call(set).status() == fop::Status::kDenied);
    set.groups = {"crew"};
    CHECK(node.call(set).status() == fop::Status::kDone);
    const fop::Attributes attributes = node.stat(fid);
    CHECK(attributes.owner == "alice");
    CHECK(attributes.group == "crew");
    CHECK(attributes.mode == 0640);

    CHECK(node.call(stat).status() == fop::Status::kDenied);
    stat.groups = {"crew"};
    CHECK(node.call(stat).status() == fop::Status::kDone);
    const WriteSpec write(fid, {{.offset = 0, .length = 10}}, pattern(10, 1));
    FopSpec by_bob = write.spec(Way::kInline);
    by_bob.principal = "bob";
    by_bob.groups = {"crew"};
    by_bob.rights = fop::kRead | fop::kWrite;
    CHECK(node.call(by_bob).status() == fop::Status::kDenied);
    by_bob.rights = fop::kAllRights;
    CHECK(node.call(by_bob).status() == fop::Status::kDone);
    set.principal = "bob";
    CHECK(node.call(set).status() == fop::Status::kDenied);
}

TEST_CASE("reqh objects: a disk that has failed a write takes no more, and is read on", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    const fop::Fid other = node.create();
    const Bytes bytes = pattern(objects::kBlock, 1);
    node.write(fid, 0, bytes);
    node.write(other, 0, bytes);
    node.disk().faults().write_error_ppm = 1'000'000;
    const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 2));
    CHECK(node.call(write.spec(Way::kInline)).status() == fop::Status::kOutcomeUnknown);
    node.disk().faults().write_error_ppm = 0;
    CHECK(node.call(write.spec(Way::kInline)).status() == fop::Status::kReadOnly);
    CHECK(node.call(truncate(fid, 0)).status() == fop::Status::kReadOnly);
    CHECK(node.call({.type = type_of("create"),
                     .body = fop::Create{.slot = kFirstSlot, .mode = 0600}})
              .status() == fop::Status::kReadOnly);
    CHECK(node.read(other, 0, objects::kBlock) == bytes);
    node.restart();
    const Bytes after = node.read(fid, 0, objects::kBlock);
    CHECK((after == bytes || after == pattern(objects::kBlock, 2)));
}

// Each may be there after a restart, or not: until then nobody can say.
TEST_CASE("reqh objects: changes that a failed disk may have lost are not shown", "[reqh]") {
    const auto kind = GENERATE(range(0, 7));
    CAPTURE(kind);
    StoreStage node;
    const fop::Fid fid = node.create("a");
    const fop::Fid other = node.create("b");
    node.write(fid, 0, pattern(3 * objects::kBlock, 1));
    node.write(other, 0, pattern(objects::kBlock, 1));
    const WriteSpec write(fid, {{.offset = 0, .length = 2 * objects::kBlock}},
                          pattern(2 * objects::kBlock, 2));
    node.disk().faults().flush_error_ppm = 1'000'000;
    FopSpec change = truncate(fid, 5);
    switch (kind) {
        case 0: break;
        case 1: change = punch(fid, {.offset = 0, .length = objects::kBlock}); break;
        case 2: change = write.spec(Way::kInline); break;
        case 3: change = write.spec(Way::kInline, fop::Durability::kBuffered); break;
        case 4: change = {.type = type_of("delete"), .body = fop::Delete{.fid = fid}}; break;
        case 5:
            change = {.type = type_of("rename"), .body = fop::Rename{.fid = fid, .name = "c"}};
            break;
        default:
            change = {.type = type_of("set_attributes"),
                      .body = fop::SetAttributes{
                          .fid = fid, .mode = 0777, .which = fop::SetAttributes::kMode}};
    }
    const fop::Status changed = node.call(change).status();
    CHECK(changed == (kind == 3 ? fop::Status::kDone : fop::Status::kOutcomeUnknown));
    if (kind == 3) {
        CHECK(node.call({.type = type_of("sync"), .body = fop::Sync{}}).status() ==
              fop::Status::kLost);
    }

    const ReadSpec read(fid, {{.offset = 0, .length = objects::kBlock}});
    for (const FopSpec& look :
         {read.spec(Way::kMemory), FopSpec{.type = type_of("stat"), .body = fop::Stat{.fid = fid}},
          FopSpec{.type = type_of("lookup"), .body = fop::Lookup{.name = "a"}},
          FopSpec{.type = type_of("delete"), .body = fop::Delete{.fid = fid}},
          FopSpec{.type = type_of("list"), .body = fop::ListObjects{}}}) {
        CAPTURE(look.type);
        CHECK(node.call(look).status() == fop::Status::kReadOnly);
    }
    CHECK(node.read(other, 0, objects::kBlock) == pattern(objects::kBlock, 1));
    CHECK(node.call({.type = type_of("list"), .body = fop::ListObjects{.prefix = "b"}}).status() ==
          fop::Status::kDone);

    node.restart();
    CHECK(node.call({.type = type_of("list"), .body = fop::ListObjects{}}).status() ==
          fop::Status::kDone);
}

TEST_CASE("reqh objects: a full disk says so, and has room again when something goes", "[reqh]") {
    StoreStage node({.disk_bytes = 12UL << 20});
    const fop::Fid first = node.create();
    node.write(first, 0, pattern(2UL << 20, 1));
    const fop::Fid fid = node.create();
    std::uint64_t at = 0;
    fop::Status status = fop::Status::kDone;
    std::string words;
    while (status == fop::Status::kDone) {
        const WriteSpec write(fid, {{.offset = at, .length = 1UL << 20}}, pattern(1UL << 20, at));
        const FakeFop& fop = node.call(write.spec(Way::kMemory));
        status = fop.status();
        words = fop.answer->words;
        if (status == fop::Status::kDone) at += 1UL << 20;
        REQUIRE(at < 12UL << 20);
    }
    CHECK(status == fop::Status::kNoSpace);
    CHECK(words == "there is no space left on its disk");
    CHECK(node.stat(fid).size_bytes == at);
    REQUIRE(node.call({.type = type_of("delete"), .body = fop::Delete{.fid = first}}).status() ==
            fop::Status::kDone);
    node.run_for(1s);
    node.write(fid, at, pattern(1UL << 20, at));
    CHECK(node.read(fid, at, 1UL << 20) == pattern(1UL << 20, at));
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh objects: a fop that is given up while it waits leaves nothing behind", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    objects::RangeLock held;
    HoldBlocks hold{.locks = &node.stores().find(kFirstSlot)->locks(),
                    .lock = &held,
                    .request = {.fid = {.high = fid.high, .low = fid.low},
                                .range = {.first = 0, .count = 1},
                                .mode = objects::LockMode::kExclusive}};
    const auto locked = node.world.run(node.stores().parts().reactor, hold_blocks(hold));
    REQUIRE(locked.has_value());
    const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 1));
    FopSpec spec = write.spec(Way::kMemory);
    FakeFop& first = node.send(spec);
    spec.deadline = node.world.now() + 100ms;
    FakeFop& late = node.send(spec);
    spec.deadline = kNever;
    FakeFop& cancelled = node.send(spec);
    node.run_for(20ms);
    cancelled.cancel_source().cancel();
    node.run_for(200ms);
    CHECK(late.status() == fop::Status::kTimedOut);
    CHECK(cancelled.status() == fop::Status::kCancelled);
    CHECK_FALSE(first.answer.has_value());
    held.release();
    node.wait_for(first);
    CHECK(first.status() == fop::Status::kDone);
    CHECK(node.stat(fid).version == 2);
    CHECK(node.stores().find(kFirstSlot)->locks().waiting_count() == 0);
}

// Random operations of every kind beside a plain picture of the object.
TEST_CASE("reqh objects: any operations, as on plain bytes", "[reqh][swarm]") {
    const std::uint64_t seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{6}));
    StoreStage node({.seed = seed});
    core::Random random(seed);
    const fop::Fid fid = node.create();
    Bytes model;
    for (int step = 0; step < 60; ++step) {
        const std::uint64_t offset = random.below(120'000);
        const std::uint64_t length = random.below(random.below(3) == 0 ? 90'000 : 9000);
        const auto kind = random.below(10);
        if (kind < 5) {
            const Bytes bytes = pattern(length, random.next());
            node.write(fid, offset, bytes);
            if (length > 0) {
                model.resize(std::max<std::size_t>(model.size(), offset + length));
                std::ranges::copy(bytes, model.begin() + static_cast<std::ptrdiff_t>(offset));
            }
        } else if (kind == 5) {
            REQUIRE(node.call(truncate(fid, offset)).status() == fop::Status::kDone);
            model.resize(offset);
        } else if (kind == 6) {
            REQUIRE(node.call(punch(fid, {.offset = offset, .length = length})).status() ==
                    fop::Status::kDone);
            const std::size_t end = std::min<std::size_t>(offset + length, model.size());
            for (std::size_t at = offset; at < end; ++at) model[at] = std::byte{0};
        } else if (kind == 7) {
            const Bytes bytes = pattern(length, random.next());
            const AppendSpec append(fid, bytes);
            REQUIRE(node.call(append.spec(Way::kMemory)).status() == fop::Status::kDone);
            model.insert(model.end(), bytes.begin(), bytes.end());
        } else if (kind == 8 && random.below(4) == 0) {
            node.restart();
        }
        const std::size_t begin = std::min<std::size_t>(offset, model.size());
        const std::size_t end = std::min<std::size_t>(offset + length, model.size());
        REQUIRE(node.read(fid, offset, length) ==
                Bytes(model.begin() + static_cast<std::ptrdiff_t>(begin),
                      model.begin() + static_cast<std::ptrdiff_t>(end)));
    }
    REQUIRE(node.read(fid, 0, 1 << 20) == model);
}

}  // namespace fopd::reqh::testing

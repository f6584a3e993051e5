// Goal: nothing that others need is held for what a client owes. Method: fops whose client does not
// send, or takes its time, in virtual time; meanwhile others use the same objects.

#include <algorithm>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

using Way = WriteSpec::Way;

// The client sends its first byte after this.
FopSpec slow(FopSpec spec, Duration transfer_time = 1h) {
    spec.transfer_time = transfer_time;
    return spec;
}

// Answered within so little that it has not waited for a client.
void require_done_soon(StoreStage& node, FopSpec spec) {
    FakeFop& fop = node.send(std::move(spec));
    node.run_for(200ms);
    REQUIRE(fop.answer.has_value());
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
}

void put_over(Bytes& bytes, std::uint64_t offset, const Bytes& with) {
    bytes.resize(std::max<std::size_t>(bytes.size(), offset + with.size()));
    std::ranges::copy(with, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

struct UploadWriteSpec {
    std::vector<fop::Range> ranges;
    Bytes bytes;
    std::vector<std::uint32_t> checksums = checksums_of(ranges, bytes);
    FopSpec spec(fop::Fid fid) const {
        fop::UploadWrite body{
            .fid = fid,
            .range = ranges.front(),
            .checksums = fop::List<std::uint32_t>(checksums.data(), checksums.size())};
        body.source.emplace();
        return {.type = type_of("upload_write"), .body = body, .source = bytes};
    }
};

struct HeldBlocks {
    objects::RangeLocks* locks;
    objects::RangeLock* lock;
    objects::LockRequest request;
};
Task<bool> take_lock(HeldBlocks what) {
    const auto locked = co_await what.locks->acquire(*what.lock, what.request, {});
    co_return locked.has_value();
}
Task<bool> let_go(objects::RangeLock* lock) {
    lock->release();
    co_return true;
}

}  // namespace

TEST_CASE("reqh slow client: data in messages do not wait behind slow clients", "[reqh]") {
    const std::size_t buffers = GENERATE(8U, 64U);
    StoreStage node({.buffer_count = buffers});
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(4 * objects::kBlock, 1));
    const ReadSpec read(fid, {{.offset = 0, .length = objects::kBlock}});
    for (std::uint8_t client = 1; client <= 32; ++client) {
        FopSpec kept = slow(read.spec(Way::kMemory));
        kept.client[0] = static_cast<std::byte>(client);
        for (int i = 0; i < 16; ++i) node.send(kept);
    }
    node.run_for(200ms);  // Until it shows that they are slow.
    for (int i = 0; i < 40; ++i) {
        node.run_for(25ms);
        FakeFop* fops[4]{};
        for (FakeFop*& fop : fops) fop = &node.send(read.spec(Way::kInline));
        node.run_for(2ms);
        INFO("buffers " << buffers << ", time " << i);
        for (const FakeFop* fop : fops) {
            REQUIRE(fop->answer.has_value());
            REQUIRE(fop->status() == fop::Status::kDone);
        }
    }
}

TEST_CASE("reqh slow client: an append whose client does not send holds no lock", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(2 * objects::kBlock, 1));
    const AppendSpec append(fid, pattern(3 * core::kBufferBytes, 2));
    FakeFop& stuck = node.send(slow(append.spec(Way::kMemory)));
    node.run_for(1s);
    REQUIRE_FALSE(stuck.transfers.empty());

    require_done_soon(node, {.type = type_of("stat"), .body = fop::Stat{.fid = fid}});
    const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 3));
    require_done_soon(node, write.spec(Way::kInline));
    const AppendSpec other(fid, pattern(100, 4));
    require_done_soon(node, other.spec(Way::kInline));
    require_done_soon(node, truncate(fid, 5));
    require_done_soon(node, {.type = type_of("delete"), .body = fop::Delete{.fid = fid}});
    CHECK_FALSE(stuck.answer.has_value());
    stuck.cancel_source().cancel();
    node.run_for(1s);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh slow client: a write whose client does not send holds no lock", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(4 * objects::kBlock, 1));
    const WriteSpec write(fid, {{.offset = 100, .length = 2 * objects::kBlock}},
                          pattern(2 * objects::kBlock, 2));
    FakeFop& stuck = node.send(slow(write.spec(Way::kMemory)));
    node.run_for(1s);
    REQUIRE_FALSE(stuck.transfers.empty());

    const WriteSpec same(fid, {{.offset = 0, .length = 4 * objects::kBlock}},
                         pattern(4 * objects::kBlock, 3));
    require_done_soon(node, same.spec(Way::kMemory));
    const ReadSpec read(fid, {{.offset = 0, .length = 4 * objects::kBlock}});
    require_done_soon(node, read.spec(Way::kMemory));
    require_done_soon(node, punch(fid, {.offset = 50, .length = objects::kBlock}));
    CHECK_FALSE(stuck.answer.has_value());
}

TEST_CASE("reqh slow client: an upload's block whose client does not send keeps no other waiting",
          "[reqh]") {
    StoreStage node;
    FakeFop& begun =
        node.call({.type = type_of("upload_begin"),
                   .body = fop::UploadBegin{
                       .size_bytes = 2 * objects::kBlock, .slot = kFirstSlot, .mode = 0600}});
    REQUIRE(begun.status() == fop::Status::kDone);
    const fop::Fid fid = std::get<fop::UploadBeginReply>(begun.answer->body).fid;
    const UploadWriteSpec write{.ranges = {{.offset = 0, .length = 2 * objects::kBlock}},
                                .bytes = pattern(2 * objects::kBlock, 1)};
    FakeFop& stuck = node.send(slow(write.spec(fid)));
    node.run_for(1s);
    REQUIRE_FALSE(stuck.transfers.empty());
    require_done_soon(node, write.spec(fid));
    require_done_soon(node,
                      {.type = type_of("upload_abort"), .body = fop::UploadAbort{.fid = fid}});
    CHECK_FALSE(stuck.answer.has_value());
}

namespace {

// Writes behind the end of an object until the disk has no block left.
void fill_disk(StoreStage& node, fop::Fid fid) {
    std::uint64_t offset = node.stat(fid).size_bytes;
    for (std::size_t length = core::kBufferBytes; length >= objects::kBlock;) {
        const WriteSpec write(fid, {{.offset = offset, .length = length}}, pattern(length, offset));
        const FakeFop& fop = node.call(write.spec(Way::kMemory));
        if (fop.status() == fop::Status::kDone) {
            offset += length;
        } else {
            REQUIRE(fop.status() == fop::Status::kNoSpace);
            length /= 2;
        }
    }
}

}  // namespace

TEST_CASE("reqh slow client: blocks that are freed during its read can be used on a full disk",
          "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    const Bytes bytes = pattern(4 * core::kBufferBytes, 1);
    node.write(fid, 0, bytes);
    const fop::Fid filling = node.create();
    fill_disk(node, filling);
    const ReadSpec read(fid, {{.offset = 0, .length = bytes.size()}});
    FakeFop& reader = node.send(slow(read.spec(Way::kMemory), 2s));
    node.run_for(1s);
    REQUIRE(reader.transfers.size() == 1);

    SECTION("the object stays as it is: the read goes on") {
        require_done_soon(node, truncate(filling, 0));
        const WriteSpec write(filling, {{.offset = 0, .length = 2 * core::kBufferBytes}},
                              pattern(2 * core::kBufferBytes, 2));
        require_done_soon(node, write.spec(Way::kMemory));
        node.wait_for(reader);
        INFO(reader.answer->words);
        REQUIRE(reader.status() == fop::Status::kDone);
        CHECK(reader.target == bytes);
    }
    SECTION("the object changes: the client is asked to read again") {
        require_done_soon(node, truncate(fid, 3 * core::kBufferBytes));
        fill_disk(node, filling);
        node.wait_for(reader);
        CHECK(reader.status() == fop::Status::kTryAgain);
    }
    SECTION("the object changes elsewhere: the read goes on") {
        require_done_soon(node, truncate(filling, 0));
        const WriteSpec write(fid, {{.offset = bytes.size(), .length = core::kBufferBytes}},
                              pattern(core::kBufferBytes, 2));
        require_done_soon(node, write.spec(Way::kMemory));
        node.wait_for(reader);
        INFO(reader.answer->words);
        REQUIRE(reader.status() == fop::Status::kDone);
        CHECK(reader.target == bytes);
    }
    SECTION("the object is deleted: the client is asked to read again") {
        require_done_soon(node, {.type = type_of("delete"), .body = fop::Delete{.fid = fid}});
        fill_disk(node, filling);
        node.wait_for(reader);
        CHECK(reader.status() == fop::Status::kTryAgain);
    }
    SECTION("nobody needs a block: the read is of the object as it was") {
        require_done_soon(node, truncate(fid, 3 * core::kBufferBytes));
        node.wait_for(reader);
        REQUIRE(reader.status() == fop::Status::kDone);
        CHECK(reader.target == bytes);
    }
    CHECK(node.all_buffers_are_back());
}

// The rest of a block that is written in part is read under the lock, when all bytes are there.
TEST_CASE("reqh slow client: halves of a block that are written at a time are both there",
          "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    Bytes expected = pattern(6 * core::kBufferBytes, 1);
    node.write(fid, 0, expected);
    const std::size_t large = 3 * core::kBufferBytes + 1000;
    const std::size_t length =
        GENERATE(objects::kBlock / 2, objects::kBlock, 3 * core::kBufferBytes + 1000);
    const std::uint64_t offset = objects::kBlock / 2;
    const Bytes late = pattern(length, 2);
    const WriteSpec slow_write(fid, {{.offset = offset, .length = length}}, late);
    FakeFop& first = node.send(slow(slow_write.spec(Way::kMemory), 50ms));
    node.run_for(1ms);
    const Bytes before = pattern(offset, 3);
    const WriteSpec front(fid, {{.offset = 0, .length = offset}}, before);
    require_done_soon(node, front.spec(Way::kInline));
    const Bytes behind = pattern(700, 4);
    const WriteSpec back(fid, {{.offset = offset + length, .length = 700}}, behind);
    require_done_soon(node, back.spec(Way::kInline));
    node.wait_for(first);
    INFO(first.answer->words);
    REQUIRE(first.status() == fop::Status::kDone);
    put_over(expected, 0, before);
    put_over(expected, offset + length, behind);
    put_over(expected, offset, late);
    CHECK(node.read(fid, 0, large + objects::kBlock) ==
          Bytes(expected.begin(),
                expected.begin() + static_cast<std::ptrdiff_t>(large + objects::kBlock)));
    node.restart();
    CHECK(node.read(fid, 0, large) ==
          Bytes(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(large)));
}

TEST_CASE("reqh slow client: as many parts of blocks as a write may have find their places",
          "[reqh]") {
    StoreStage node({.buffer_count = 1});
    const fop::Fid fid = node.create();
    Bytes expected = pattern(4UL << 20, 1);
    node.write(fid, 0, expected);
    // Each begins and ends within a block; the last two share one.
    const std::uint64_t length =
        GENERATE(100U, objects::kBlock, 3 * objects::kBlock, 15 * objects::kBlock);
    std::vector<fop::Range> ranges;
    for (std::uint64_t i = 0; i + 1 < fop::kRangesMax; ++i) {
        ranges.push_back({.offset = i * 16 * objects::kBlock + 3000, .length = length});
    }
    ranges.push_back({.offset = ranges.back().end() + 7, .length = 13});
    std::ranges::reverse(ranges);
    const Bytes bytes = pattern(fop::total_bytes(ranges), 2);
    const WriteSpec write(fid, ranges, bytes);
    FakeFop& fop = node.call(write.spec(Way::kMemory));
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    std::size_t at = 0;
    for (const fop::Range& range : ranges) {
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), range.length,
                    expected.begin() + static_cast<std::ptrdiff_t>(range.offset));
        at += range.length;
    }
    CHECK(node.read(fid, 0, expected.size()) == expected);
    node.restart();
    CHECK(node.read(fid, 0, expected.size()) == expected);
    CHECK(node.stat(fid).allocated_bytes == expected.size());
}

TEST_CASE("reqh slow client: appends whose bytes come at a time follow each other", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    Bytes expected = pattern(GENERATE(0U, objects::kBlock, 1000U), 1);
    if (!expected.empty()) node.write(fid, 0, expected);
    // Lengths that make the others' offsets what they were, whole blocks behind, and neither; in
    // one buffer and in several.
    const std::uint64_t seed = GENERATE(range(1U, 9U));
    core::Random random(seed);
    std::vector<Bytes> all;
    std::vector<AppendSpec> specs;
    std::vector<FakeFop*> fops;
    for (std::uint64_t i = 0; i < 5; ++i) {
        std::size_t length = 1 + random.below(3 * objects::kBlock);
        if (random.below(3) == 0) length = (1 + random.below(70)) * objects::kBlock;
        if (random.below(3) == 0) length = core::kBufferBytes + random.below(core::kBufferBytes);
        all.push_back(pattern(length, seed * 100 + i));
        specs.emplace_back(fid, all.back());
    }
    for (const AppendSpec& each : specs) {
        const auto time = static_cast<std::int64_t>(1 + random.below(20));
        fops.push_back(&node.send(slow(each.spec(Way::kMemory), time * 1ms)));
    }
    node.run_for(20ms);
    const Bytes small = pattern(777, 5);
    const AppendSpec in_between(fid, small);
    fops.push_back(&node.send(in_between.spec(Way::kInline)));
    all.push_back(small);
    for (FakeFop* const fop : fops) node.wait_for(*fop);

    std::vector<std::size_t> order(fops.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto offset_of = [&](std::size_t i) {
        INFO(fops[i]->answer->words);
        REQUIRE(fops[i]->status() == fop::Status::kDone);
        return std::get<fop::AppendReply>(fops[i]->answer->body).offset;
    };
    std::ranges::sort(order, {}, offset_of);
    for (const std::size_t i : order) {
        REQUIRE(offset_of(i) == expected.size());
        expected.insert(expected.end(), all[i].begin(), all[i].end());
    }
    CHECK(node.read(fid, 0, expected.size() + 1) == expected);
    CHECK(node.stat(fid).allocated_bytes ==
          (expected.size() + objects::kBlock - 1) / objects::kBlock * objects::kBlock);
    node.restart();
    CHECK(node.read(fid, 0, expected.size() + 1) == expected);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh slow client: what became of the object meanwhile is what counts", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(2 * objects::kBlock + 5, 1));
    const std::uint64_t free_blocks = node.volume().space_use().free_blocks;
    const Bytes bytes = pattern(2 * core::kBufferBytes, 2);
    const WriteSpec write(fid, {{.offset = 5, .length = bytes.size()}}, bytes);
    const AppendSpec append(fid, bytes);

    SECTION("it was deleted") {
        FakeFop& first = node.send(slow(write.spec(Way::kMemory), 100ms));
        FakeFop& second = node.send(slow(append.spec(Way::kMemory), 100ms));
        node.run_for(1ms);
        require_done_soon(node, {.type = type_of("delete"), .body = fop::Delete{.fid = fid}});
        node.wait_for(first);
        node.wait_for(second);
        CHECK(first.status() == fop::Status::kNotFound);
        CHECK(second.status() == fop::Status::kNotFound);
        node.run_for(1s);
        CHECK(node.volume().space_use().free_blocks >= free_blocks);
    }
    SECTION("it was truncated") {
        FakeFop& second = node.send(slow(append.spec(Way::kMemory), 100ms));
        node.run_for(1ms);
        require_done_soon(node, truncate(fid, 3));
        node.wait_for(second);
        REQUIRE(second.status() == fop::Status::kDone);
        CHECK(std::get<fop::AppendReply>(second.answer->body).offset == 3);
        CHECK(node.read(fid, 3, bytes.size() + 1) == bytes);
    }
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh slow client: nothing is asked of a client that may not write", "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 1));
    FopSpec spec = write.spec(Way::kMemory);
    spec.principal = "mallory";
    spec.rights = fop::kRead | fop::kWrite;
    FakeFop& fop = node.call(spec);
    CHECK(fop.status() == fop::Status::kDenied);
    CHECK(fop.transfers.empty());
    const AppendSpec append({.high = fid.high, .low = fid.low + 1000}, pattern(objects::kBlock, 1));
    FakeFop& other = node.call(append.spec(Way::kMemory));
    CHECK(other.status() == fop::Status::kNotFound);
    CHECK(other.transfers.empty());
}

TEST_CASE("reqh admission: fops that wait for a lock keep no others from running", "[reqh]") {
    StoreStage node;
    node.handler().set_limits({.max_foms = 4});
    const fop::Fid wanted = node.create();
    const fop::Fid other = node.create();
    objects::Stores& stores = node.stores();
    objects::RangeLock held;
    const HeldBlocks hold{.locks = &stores.find(kFirstSlot)->locks(),
                          .lock = &held,
                          .request = {.fid = {.high = wanted.high, .low = wanted.low},
                                      .range = objects::kWholeObject,
                                      .mode = objects::LockMode::kExclusive}};
    REQUIRE(node.world.run(stores.parts().reactor, take_lock(hold)).has_value());
    std::vector<FakeFop*> waiting;
    for (int i = 0; i < 20; ++i) {
        waiting.push_back(
            &node.send({.type = type_of("set_attributes"),
                        .body = fop::SetAttributes{
                            .fid = wanted, .mode = 0600, .which = fop::SetAttributes::kMode}}));
    }
    node.run_for(1ms);
    REQUIRE(node.handler().running_count() == 4);

    FakeFop& stat = node.send({.type = type_of("stat"), .body = fop::Stat{.fid = other}});
    node.run_for(1s);
    CHECK(stat.answer.has_value());
    REQUIRE(node.world.run(stores.parts().reactor, let_go(&held)).has_value());
    for (FakeFop* const each : waiting) {
        node.wait_for(*each);
        CHECK(each->status() == fop::Status::kDone);
    }
    CHECK(node.handler().running_count() == 0);
    CHECK(node.handler().admission().running() == 0);
}

TEST_CASE("reqh progress: what a fop waits for is known while it runs at another locality",
          "[reqh]") {
    StoreStage node({.localities = 2, .disks = 2});
    const std::uint16_t far = kFirstSlot + 1;
    const fop::Fid fid = node.create({}, far);
    objects::Stores& there = node.stores(1);
    objects::RangeLock held;
    const HeldBlocks hold{.locks = &there.find(far)->locks(),
                          .lock = &held,
                          .request = {.fid = {.high = fid.high, .low = fid.low},
                                      .range = {.first = 0, .count = 8},
                                      .mode = objects::LockMode::kExclusive}};
    REQUIRE(node.world.run(there.parts().reactor, take_lock(hold)).has_value());
    const WriteSpec write(fid, {{.offset = 0, .length = 2 * objects::kBlock}},
                          pattern(2 * objects::kBlock, 1));
    FakeFop& fop = node.send(slow(write.spec(Way::kMemory), 100ms));
    const auto traced = [&] {
        const auto record = node.handler().trace({.session = 0x5f, .request = fop.request().id});
        REQUIRE(record.has_value());
        return *record;
    };
    node.run_for(50ms);
    CHECK(traced().times.phase() == Phase::kFetch);
    CHECK(to_text(traced().wait) == "data from the client");
    node.run_for(1s);
    CHECK(traced().times.phase() == Phase::kDistributedResources);
    CHECK(to_text(traced().wait).starts_with("a lock of blocks 0 to 1 of object 0004"));
    const std::vector<FopRecord> running = node.handler().in_flight(100).fops;
    REQUIRE(running.size() == 1);
    CHECK(running[0].wait.what == WaitsFor::kLock);
    // The lock is the other locality's.
    node.world.run(there.parts().reactor, let_go(&held));
    node.wait_for(fop);
    CHECK(fop.status() == fop::Status::kDone);
    CHECK(traced().waited.wait.what == WaitsFor::kLock);
    CHECK(traced().waited.span > 900ms);
}

TEST_CASE("reqh progress: a wait for a buffer is known, before the fop runs and afterwards",
          "[reqh]") {
    StoreStage node({.buffer_count = 1});
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(objects::kBlock, 1));
    const ReadSpec read(fid, {{.offset = 0, .length = objects::kBlock}});
    FakeFop& holder = node.send(slow(read.spec(Way::kMemory), 1s));
    // Its client has a share of the buffers, which the fop waits for before it runs; what is
    // brought in the messages runs, and waits for any buffer.
    FakeFop& for_share = node.send(read.spec(Way::kMemory));
    FakeFop& for_any = node.send(read.spec(Way::kInline));
    const auto traced = [&node](const FakeFop& fop) {
        const auto record = node.handler().trace({.session = 0x5f, .request = fop.request().id});
        REQUIRE(record.has_value());
        return *record;
    };
    node.run_for(500ms);
    CHECK(traced(for_share).state == FopRecord::State::kQueued);
    CHECK(to_text(traced(for_share).wait) == "a buffer");
    CHECK(traced(for_any).state == FopRecord::State::kRunning);
    CHECK(traced(for_any).times.phase() == Phase::kLocalResources);
    CHECK(to_text(traced(for_any).wait) == "a buffer");
    for (FakeFop* const each : {&holder, &for_share, &for_any}) {
        node.wait_for(*each);
        CHECK(each->status() == fop::Status::kDone);
    }
    CHECK(to_text(traced(for_any).waited.wait) == "a buffer");
    CHECK(traced(for_any).waited.span > 900ms);
}

TEST_CASE("reqh slow client: a fop that waits for a lock after waiting for its client is hung",
          "[reqh]") {
    StoreStage node;
    const fop::Fid fid = node.create();
    const std::uint64_t length = 6 * core::kBufferBytes;
    node.write(fid, 0, pattern(length, 1));
    objects::Stores& there = node.stores();
    objects::RangeLock held;
    const HeldBlocks hold{.locks = &there.find(kFirstSlot)->locks(),
                          .lock = &held,
                          .request = {.fid = {.high = fid.high, .low = fid.low},
                                      .range = {.first = 0, .count = 8},
                                      .mode = objects::LockMode::kExclusive}};
    REQUIRE(node.world.run(there.parts().reactor, take_lock(hold)).has_value());
    const WriteSpec write(fid, {{.offset = 0, .length = length}}, pattern(length, 2));
    FakeFop& fop = node.send(slow(write.spec(Way::kMemory), 25s));
    node.run_for(2min + 1s);
    REQUIRE(node.event_count("reqh.waits_for_client") == 1);

    // Its last bytes came after two and a half minutes.
    node.run_for(2min);
    CHECK(node.event_count("reqh.hung_fom") == 0);
    CHECK(node.handler().hung_count() == 0);
    node.run_for(1min);
    CHECK(node.event_count("reqh.hung_fom") == 1);
    node.run_for(10min);
    CHECK(node.event_count("reqh.hung_fom") == 1);
    CHECK(node.handler().hung_count() == 1);
    CHECK(node.event_count("reqh.waits_for_client") == 1);

    REQUIRE(node.world.run(there.parts().reactor, let_go(&held)).has_value());
    node.wait_for(fop);
    CHECK(fop.status() == fop::Status::kDone);
}

}  // namespace fopd::reqh::testing

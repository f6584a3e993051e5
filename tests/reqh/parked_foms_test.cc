// Goal: foms that wait for another fop keep nothing from others that these need. Method: the test
// holds a lock that fops wait for, in virtual time; meanwhile others use other objects.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "objects/home_volume.h"
#include "objects/range_locks.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing::parked_foms {

namespace {

// The lock of all of an object on the first disk, as another fop would have it.
class HeldObject {
public:
    HeldObject(StoreStage& node, fop::Fid fid) : node_(node) {
        objects::RangeLocks& locks = node.stores().find(kFirstSlot)->locks();
        const objects::LockRequest whole{.fid = {.high = fid.high, .low = fid.low},
                                         .range = objects::kWholeObject,
                                         .mode = objects::LockMode::kExclusive};
        run(take(&locks, &lock_, whole));
    }
    void let_go() { run(release(&lock_)); }

private:
    static Task<bool> take(objects::RangeLocks* locks, objects::RangeLock* lock,
                           objects::LockRequest request) {
        const auto locked = co_await locks->acquire(*lock, request, {});
        co_return locked.has_value();
    }
    static Task<bool> release(objects::RangeLock* lock) {
        lock->release();
        co_return true;
    }
    void run(Task<bool> task) {
        REQUIRE(node_.world.run(node_.stores().parts().reactor, std::move(task)).has_value());
    }

    StoreStage& node_;
    objects::RangeLock lock_;
};

void require_all_done(StoreStage& node, const std::vector<FakeFop*>& fops) {
    for (FakeFop* const each : fops) {
        node.wait_for(*each);
        CHECK(each->status() == fop::Status::kDone);
    }
    CHECK(node.handler().running_count() == 0);
    CHECK(node.handler().admission().running() == 0);
}

}  // namespace

TEST_CASE("reqh parked: copies of a request that waits keep no others from running", "[reqh]") {
    constexpr std::array<std::byte, 16> kClient{std::byte{0xa}};
    StoreStage node;
    node.handler().set_limits({.max_foms = 4});
    const fop::Fid wanted = node.create();
    const fop::Fid other = node.create();
    HeldObject held(node, wanted);
    const FopSpec change{
        .type = type_of("set_attributes"),
        .body = fop::SetAttributes{.fid = wanted, .mode = 0600, .which = fop::SetAttributes::kMode},
        .client = kClient,
        .number = 0x107};
    std::vector<FakeFop*> copies;
    for (int i = 0; i < 20; ++i) copies.push_back(&node.send(change));
    node.run_for(1ms);
    REQUIRE(node.handler().running_count() == 4);

    FakeFop& stat = node.send({.type = type_of("stat"), .body = fop::Stat{.fid = other}});
    node.run_for(1s);
    CHECK(stat.answer.has_value());
    held.let_go();
    require_all_done(node, copies);
}

TEST_CASE("reqh parked: fops that keep their buffers at a lock leave some to other principals",
          "[reqh]") {
    StoreStage node({.buffer_count = 16});
    node.handler().set_limits({.max_foms = 4});
    const fop::Fid wanted = node.create();
    const fop::Fid other = node.create();
    node.write(other, 0, pattern(kBlock, 1));
    HeldObject held(node, wanted);
    const Bytes bytes = pattern(kBlock, 2);
    const WriteSpec write(wanted, {{.offset = 0, .length = bytes.size()}}, bytes);
    std::vector<FakeFop*> writes;
    for (int i = 0; i < 40; ++i) writes.push_back(&node.send(write.spec(WriteSpec::Way::kInline)));
    node.run_for(3s);

    const ReadSpec read(other, {{.offset = 0, .length = kBlock}});
    FopSpec others_read = read.spec(WriteSpec::Way::kMemory);
    others_read.principal = "bob";
    FakeFop& quick = node.send(others_read);
    node.run_for(1s);
    REQUIRE(quick.answer.has_value());
    CHECK(quick.status() == fop::Status::kDone);
    held.let_go();
    require_all_done(node, writes);
    CHECK(node.all_buffers_are_back());
}

namespace {

// Two disks, of which the second does not answer for a minute.
class SilentDisk : public StoreStage {
public:
    explicit SilentDisk(std::uint32_t localities, std::size_t foms_max)
        : StoreStage({.localities = localities, .disks = 2, .buffer_count = 64}),
          silent_(create({}, kFirstSlot + 1)),
          other_(create({}, kFirstSlot)) {
        handler().set_limits({.max_foms = static_cast<std::uint32_t>(foms_max)});
        for (const fop::Fid fid : {silent_, other_}) write(fid, 0, pattern(kBlock, 1));
        set_delay(1, 1min);
    }
    void set_delay(std::uint32_t number, Duration delay) {
        disk(number).faults().delay_min = disk(number).faults().delay_max = delay;
    }
    FakeFop* read_silent() { return &send(of(silent_)); }
    FakeFop* read_other() {
        FopSpec spec = of(other_);
        spec.principal = "bob";
        return &send(std::move(spec));
    }

private:
    FopSpec of(fop::Fid fid) {
        return reads_.emplace_back(fid, std::vector{fop::Range{.offset = 0, .length = kBlock}})
            .spec(WriteSpec::Way::kInline);
    }

    std::deque<ReadSpec> reads_;  // They outlive the fops.
    const fop::Fid silent_;
    const fop::Fid other_;
};

}  // namespace

TEST_CASE("reqh parked: fops for a disk that does not answer keep no others from running for long",
          "[reqh]") {
    constexpr std::size_t kMaxFoms = 4;
    SilentDisk node(GENERATE(1U, 2U), kMaxFoms);
    std::vector<FakeFop*> reads;
    for (std::size_t i = 0; i < 20; ++i) reads.push_back(node.read_silent());
    const FakeFop* const other = node.read_other();
    node.run_for(1s);
    REQUIRE(node.handler().running_count() == kMaxFoms);
    CHECK_FALSE(other->answer.has_value());

    node.run_for(kDiskAnswersWithin);
    REQUIRE(other->answer.has_value());
    CHECK(other->status() == fop::Status::kDone);
    // As many run as may, so further ones are answered at once.
    CHECK(node.handler().running_count() == kMaxFoms);
    for (std::size_t i = kMaxFoms; i < reads.size(); ++i) {
        REQUIRE(reads[i]->answer.has_value());
        CHECK(reads[i]->status() == fop::Status::kTryAgain);
    }

    node.run_for(1min);
    reads.resize(kMaxFoms);
    require_all_done(node, reads);
    node.set_delay(1, 1ms);
    node.run_for(1s);
    reads = {node.read_silent()};
    require_all_done(node, reads);
}

TEST_CASE("reqh parked: half of the foms may run for a disk that does not answer", "[reqh]") {
    constexpr std::size_t kMaxFoms = 6;
    SilentDisk node(1, kMaxFoms);
    node.set_delay(0, 1s);
    std::vector<FakeFop*> reads{node.read_silent()};
    node.run_for(kDiskAnswersWithin);
    // As long as there is room, nobody looks at what runs.
    for (std::size_t i = 1; i < kMaxFoms; ++i) reads.push_back(node.read_other());
    node.run_for(200ms);
    for (int i = 0; i < 2; ++i) reads.push_back(node.read_silent());
    const FakeFop* const beyond = node.read_silent();
    reads.push_back(node.read_other());
    node.run_for(100ms);
    CHECK(node.handler().running_count() == kMaxFoms + 3);
    REQUIRE(beyond->answer.has_value());
    CHECK(beyond->status() == fop::Status::kTryAgain);

    for (const std::uint32_t disk : {0U, 1U}) node.set_delay(disk, 1ms);
    node.run_for(2min);
    require_all_done(node, reads);
}

}  // namespace fopd::reqh::testing::parked_foms

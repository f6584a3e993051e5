// Goal: foms that wait for another fop keep nothing from others that these need. Method: the test
// holds a lock that fops wait for, in virtual time; meanwhile others use other objects.

#include <array>
#include <cstddef>
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

}  // namespace fopd::reqh::testing::parked_foms

// Goal: a reply says where the time of its fop went, if the client asks: at least 95 % of the time
// of a slow fop has a name, and each delay is found under its own. Method: a handler, and whole
// nodes, in the simulated world; delays of known length, one at a time and two together.

#include <string>

#include "tests/catch.h"
#include "tests/reqh/fake_fop.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;
using fop::SpentOn;

namespace {

FopSpec timed(FopSpec spec) {
    spec.wants_times = true;
    return spec;
}

fop::TimeSpent times_of(const FakeFop& fop) {
    REQUIRE(fop.status() == fop::Status::kDone);
    REQUIRE(fop.answer->times.has_value());
    return *fop.answer->times;
}

// All parts but the total.
Duration named(const fop::TimeSpent& times) {
    Duration sum{};
    for (std::size_t i = 1; i < fop::kSpentOnCount; ++i) sum += times.of(static_cast<SpentOn>(i));
    return sum;
}

void require_is_named(const fop::TimeSpent& times) {
    const Duration total = times.of(SpentOn::kTotal);
    CAPTURE(total.count(), named(times).count());
    REQUIRE(named(times) * 100 >= total * 95);
    REQUIRE(named(times) * 100 <= total * 101);
}

// Too much to be kept in the log.
constexpr std::uint64_t kBytes = 64 * kBlock;

double ms(Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

// A node whose disks take so long for each operation.
StageOptions slow_disks(Duration each, std::uint32_t localities = 1) {
    StageOptions options{.localities = localities, .disks = localities};
    options.faults.delay_min = options.faults.delay_max = each;
    return options;
}

// Lives as long as its fops.
class TimedRead {
public:
    explicit TimedRead(fop::Fid fid) : read_(fid, {{.offset = 0, .length = kBytes}}) {}
    FopSpec spec() const { return timed(read_.spec(WriteSpec::Way::kMemory)); }

private:
    ReadSpec read_;
};

}  // namespace

TEST_CASE("reqh: a reply has no times that nobody asked for", "[reqh]") {
    HandlerWorld node;
    FakeFop& fop = node.send(ping());
    node.world.run_for(1s);
    REQUIRE(fop.answer.has_value());
    REQUIRE_FALSE(fop.answer->times.has_value());
}

TEST_CASE("reqh: times tell the wait for a turn from that for the client", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(
        bulk_echo(kOneBuffer, 10ms));  // Twice; a fop that waits longer lets the next one run.
    FakeFop& fop = node.send(timed(bulk_echo(kOneBuffer, 300ms)));
    node.world.run_for(10s);

    const fop::TimeSpent times = times_of(fop);
    require_is_named(times);
    REQUIRE(ms(times.of(SpentOn::kTotal)) == Approx(620).epsilon(0.001));
    REQUIRE(ms(times.of(SpentOn::kPolicy)) == Approx(20).epsilon(0.001));
    REQUIRE(ms(times.of(SpentOn::kClient)) == Approx(600).epsilon(0.001));
}

TEST_CASE("reqh: times name the wait for a buffer", "[reqh]") {
    HandlerWorld node({.max_foms = 8, .buffer_count = 1});
    node.send(bulk_echo(kOneBuffer, 10ms));
    FakeFop& fop = node.send(timed(bulk_echo(kOneBuffer, 300ms)));
    node.world.run_for(10s);

    const fop::TimeSpent times = times_of(fop);
    require_is_named(times);
    REQUIRE(ms(times.of(SpentOn::kBuffer) + times.of(SpentOn::kPolicy)) ==
            Approx(20).epsilon(0.001));
    REQUIRE(ms(times.of(SpentOn::kClient)) == Approx(600).epsilon(0.001));
}

TEST_CASE("reqh: times name the disk that a read waits for", "[reqh]") {
    StoreStage stage(slow_disks(50ms));
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, pattern(kBytes, 1));

    const TimedRead read(fid);
    const fop::TimeSpent times = times_of(stage.call(read.spec()));
    require_is_named(times);
    REQUIRE(ms(times.of(SpentOn::kDisk)) == Approx(50).epsilon(0.02));
}

TEST_CASE("reqh: times tell a turn at the disk from its work", "[reqh]") {
    StoreStage stage(slow_disks(50ms));
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, pattern(kBytes, 1));
    const TimedRead each(fid);
    std::vector<FakeFop*> reads;
    for (int i = 0; i < 100; ++i) reads.push_back(&stage.send(each.spec()));
    for (FakeFop* const read : reads) stage.wait_for(*read);

    Duration queued{};
    for (const FakeFop* const read : reads) {
        const fop::TimeSpent times = times_of(*read);
        require_is_named(times);
        REQUIRE(times.of(SpentOn::kDisk) >= 49ms);
        queued += times.of(SpentOn::kDiskQueue) + times.of(SpentOn::kPolicy);
    }
    REQUIRE(queued > 50ms);
}

TEST_CASE("reqh: times name the log that a durable write waits for", "[reqh]") {
    StoreStage stage(slow_disks(50ms));
    const fop::Fid fid = stage.create("a");
    WriteSpec write(fid, {{.offset = 0, .length = kBytes}}, pattern(kBytes, 1));

    const fop::TimeSpent times = times_of(stage.call(timed(write.spec(WriteSpec::Way::kMemory))));
    require_is_named(times);
    REQUIRE(times.of(SpentOn::kDisk) >= 49ms);  // Its data.
    REQUIRE(times.of(SpentOn::kLog) >= 49ms);
}

TEST_CASE("reqh: times name the lock that another fop holds", "[reqh]") {
    StoreStage stage(slow_disks(50ms));
    const fop::Fid fid = stage.create("a");
    WriteSpec first(fid, {{.offset = 0, .length = kBlock}}, pattern(kBlock, 1));
    WriteSpec second(fid, {{.offset = 0, .length = kBlock}}, pattern(kBlock, 2));
    FakeFop& ahead = stage.send(timed(first.spec(WriteSpec::Way::kInline)));
    FakeFop& behind = stage.send(timed(second.spec(WriteSpec::Way::kInline)));
    stage.wait_for(behind);

    const fop::TimeSpent times = times_of(behind);
    require_is_named(times);
    REQUIRE(times.of(SpentOn::kLock) >= times_of(ahead).of(SpentOn::kDisk));
}

TEST_CASE("reqh: times name a locality that does not turn, also beside a slow disk", "[reqh]") {
    const auto disk_takes = GENERATE(Duration(0ms), Duration(50ms));
    StageOptions options = slow_disks(disk_takes, 2);
    StoreStage stage(options);
    const std::uint16_t other = kFirstSlot + 1;  // The disk of the second locality.
    const fop::Fid fid = stage.create("a", other);
    stage.write(fid, 0, pattern(kBytes, 1));
    stage.stall(1, 200ms);

    const TimedRead read(fid);
    const fop::TimeSpent times = times_of(stage.call(read.spec()));
    require_is_named(times);
    CAPTURE(ms(times.of(SpentOn::kLocality)), ms(times.of(SpentOn::kDisk)));
    REQUIRE(ms(times.of(SpentOn::kLocality)) == Approx(200).epsilon(0.05));
    REQUIRE(ms(times.of(SpentOn::kDisk)) == Approx(ms(disk_takes)).margin(1));
}

TEST_CASE("reqh: times name the log that a sync waits for", "[reqh]") {
    StoreStage stage(slow_disks(50ms));
    const fop::Fid fid = stage.create("a");
    WriteSpec write(fid, {{.offset = 0, .length = kBytes}}, pattern(kBytes, 1));
    stage.call(write.spec(WriteSpec::Way::kMemory, fop::Durability::kBuffered));

    const fop::TimeSpent times =
        times_of(stage.call(timed({.type = type_of("sync"), .body = fop::Sync{}})));
    require_is_named(times);
    REQUIRE(times.of(SpentOn::kLog) >= 49ms);
}

TEST_CASE("reqh: times name the space that another fop makes free, beside disk and log", "[reqh]") {
    StoreStage stage(slow_disks(50ms));
    const fop::Fid given_up = stage.create("given up");
    const fop::Fid fid = stage.create("a");
    const fop::Fid other = stage.create("other");
    stage.write(given_up, 0, pattern(kBytes, 1));
    fop::Status status = fop::Status::kDone;
    for (std::uint64_t at = 0; status == fop::Status::kDone; at += kBytes) {
        const WriteSpec fill(other, {{.offset = at, .length = kBytes}}, pattern(kBytes, at));
        status = stage.call(fill.spec(WriteSpec::Way::kMemory)).status();
    }
    REQUIRE(status == fop::Status::kNoSpace);
    stage.run_for(1s);

    // Its space is free when its record is durable, which takes an operation of the disk at least.
    FakeFop& cut = stage.send(truncate(given_up, 0));
    stage.run_for(1ms);
    const WriteSpec write(fid, {{.offset = 0, .length = kBytes}}, pattern(kBytes, 2));
    FakeFop& fop = stage.send(timed(write.spec(WriteSpec::Way::kMemory)));
    stage.wait_for(fop);
    stage.wait_for(cut);

    const fop::TimeSpent times = times_of(fop);
    require_is_named(times);
    CAPTURE(ms(times.of(SpentOn::kRoom)), ms(times.of(SpentOn::kDisk)),
            ms(times.of(SpentOn::kLog)));
    REQUIRE(times.of(SpentOn::kRoom) >= 40ms);
    REQUIRE(times.of(SpentOn::kDisk) >= 49ms);
    REQUIRE(times.of(SpentOn::kLog) >= 49ms);
}

TEST_CASE("reqh: times tell a slow client from a slow disk", "[reqh]") {
    StoreStage stage(slow_disks(50ms));
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, pattern(kBytes, 1));

    const TimedRead read(fid);
    FopSpec spec = read.spec();
    spec.transfer_time = 300ms;
    const fop::TimeSpent times = times_of(stage.call(std::move(spec)));
    require_is_named(times);
    CAPTURE(ms(times.of(SpentOn::kClient)), ms(times.of(SpentOn::kDisk)));
    REQUIRE(times.of(SpentOn::kClient) >= 299ms);
    REQUIRE(ms(times.of(SpentOn::kDisk)) == Approx(50).epsilon(0.02));
}

TEST_CASE("reqh: times tell a locality that does not turn from the log of a durable write",
          "[reqh]") {
    StoreStage stage(slow_disks(50ms, 2));
    const std::uint16_t other = kFirstSlot + 1;  // The disk of the second locality.
    const fop::Fid fid = stage.create("a", other);
    stage.run_for(1s);
    stage.stall(1, 200ms);

    const WriteSpec write(fid, {{.offset = 0, .length = kBytes}}, pattern(kBytes, 1));
    const fop::TimeSpent times = times_of(stage.call(timed(write.spec(WriteSpec::Way::kMemory))));
    require_is_named(times);
    CAPTURE(ms(times.of(SpentOn::kLocality)), ms(times.of(SpentOn::kLog)));
    REQUIRE(ms(times.of(SpentOn::kLocality)) == Approx(200).epsilon(0.05));
    REQUIRE(times.of(SpentOn::kLog) >= 49ms);
}

TEST_CASE("reqh: waits for each reason are added up apart", "[reqh]") {
    core::VirtualWorld world(1);
    const auto reactor = world.make_reactor();
    Progress progress;
    progress.begin(reactor->now());
    for (std::size_t i = 1; i < kWaitsForCount; ++i) {
        progress.begin_wait({.what = static_cast<WaitsFor>(i)}, Instant(1ms));
        progress.end_wait(Instant(1ms + 1us * static_cast<int>(i)));
    }
    for (std::size_t i = 1; i < kWaitsForCount; ++i) {
        REQUIRE(progress.waited_for(static_cast<WaitsFor>(i)) == 1us * static_cast<int>(i));
        REQUIRE_FALSE(to_text({.what = static_cast<WaitsFor>(i)}).empty());
    }
}

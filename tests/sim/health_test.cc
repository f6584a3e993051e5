// Goal: the health of a node names what is wrong with its disks and localities, and forgets it when
// it is over. Method: a node with a disk on each of two localities; faults of the simulated world.

#include "daemon/health.h"

#include "store/object.h"
#include "tests/sim/disk_machine.h"

using namespace fopd;
using namespace fopd::sim;
using namespace fopd::sim::testing;
using daemon::NodeHealth;
using Cause = daemon::NodeHealth::Cause;
using Level = daemon::NodeHealth::Level;

namespace {

enum class Look : std::uint8_t { kScrub, kCheck };

class HealthMachine : public DiskMachine {
public:
    explicit HealthMachine(std::uint64_t seed) : DiskMachine(seed) {
        REQUIRE(start());
        REQUIRE(put(0, 1));
        restart();  // It counts its objects.
        REQUIRE(problems().empty());
    }

    std::vector<NodeHealth::Problem> problems() {
        return daemon::health_of(node.node(), node.configuration(), world.clock()).problems;
    }
    // The words about the cause; empty: there is no such problem.
    std::string problem(Cause cause) {
        for (const NodeHealth::Problem& each : problems()) {
            if (each.cause == cause) return each.text;
        }
        return {};
    }
    // Of d0, to its end.
    void look(Look look) {
        daemon::Locality& locality = *node.node().localities()[disk(0).locality().index];
        locality.reactor().spawn(locality.work(), begin(&locality, *disk(0).slot(), look));
        world.run_for(10s);
    }

private:
    static Task<void> begin(daemon::Locality* locality, store::Slot slot, Look look) {
        const auto begun = look == Look::kScrub ? locality->scrub()->begin(slot)
                                                : locality->store_check()->begin(slot);
        REQUIRE(begun.has_value());
        locality->publish();
        co_return;
    }
};

}  // namespace

TEST_CASE(
    "sim health: a disk whose reads fail is suspect for ten minutes and until a read succeeds",
    "[sim]") {
    HealthMachine machine(51);
    machine.node.disks().set_faults("d0", {.read_error_ppm = 1'000'000});
    machine.look(Look::kCheck);
    CHECK(machine.problem(Cause::kDiskSuspect) == "disk d0 is suspect: a read failed");

    // Nobody uses it. It is read all the same, now and then.
    machine.world.run_for(25min);
    CHECK(machine.problem(Cause::kDiskSuspect) == "disk d0 is suspect: a read failed");
    machine.node.disks().set_faults("d0", {});
    machine.world.run_for(11min);
    CHECK(machine.problem(Cause::kDiskSuspect).empty());
    REQUIRE(machine.put(0, 2));
}

TEST_CASE("sim health: a disk that could not be written is read-only until a restart", "[sim]") {
    HealthMachine machine(52);
    machine.node.disks().set_faults("d0", {.write_error_ppm = 1'000'000});
    REQUIRE_FALSE(machine.put(0, 2));
    machine.world.run_for(3s);

    const auto problems = machine.problems();
    REQUIRE(problems.size() == 1);
    CHECK(problems.front().cause == Cause::kDiskReadOnly);
    CHECK(problems.front().level == Level::kCritical);
    CHECK(problems.front().text == "disk d0 is read-only: a write failed");

    machine.restart();
    CHECK(machine.problems().empty());
}

TEST_CASE("sim health: what a check finds counts until the next one", "[sim]") {
    HealthMachine machine(53);
    constexpr std::uint64_t kLogBegins = store::Log::kSegmentsBlock * devices::kBlockBytes;
    devices::DiskImage& image = machine.node.disks().image("d0");
    image.flip_bit(kLogBegins + 100, 3);
    machine.look(Look::kCheck);
    CHECK(machine.problem(Cause::kCheckFindings) == "disk d0: a check found 1 fault");

    image.flip_bit(kLogBegins + 100, 3);
    machine.look(Look::kCheck);
    CHECK(machine.problem(Cause::kCheckFindings).empty());
}

TEST_CASE("sim health: a scrub that fails counts until one is complete", "[sim]") {
    HealthMachine machine(54);
    const store::Fid fid{.high = std::uint64_t{*machine.disk(0).slot()} << 48, .low = 1};
    const store::Key key = store::Key::extent(fid, 0);
    auto& index = machine.node.disks().index(machine.disk(0).disk_id()).entries;
    const std::string extent(reinterpret_cast<const char*>(key.bytes().data()), key.bytes().size());
    index[extent] = "no extent";
    machine.look(Look::kScrub);
    CHECK(machine.problem(Cause::kScrubFailed) == "disk d0: the last scrub failed");

    index.erase(extent);
    machine.look(Look::kScrub);
    CHECK(machine.problem(Cause::kScrubFailed).empty());
}

TEST_CASE("sim health: a locality that does not turn is stuck", "[sim]") {
    HealthMachine machine(55);
    machine.world.stall(machine.node.locality(1), after(machine.world.now(), 9s));
    machine.world.run_for(7s);

    const auto problems = machine.problems();
    REQUIRE(problems.size() == 1);
    CHECK(problems.front().cause == Cause::kLocalityStuck);
    CHECK(problems.front().level == Level::kCritical);
    CHECK(problems.front().text == "locality 1 is stuck");

    machine.world.run_for(5s);
    CHECK(machine.problems().empty());
}

// Goal: acknowledged objects are never lost, however the lives of a node end. Method: the real Node
// over simulated disks that outlive it, each life ended at random.

#include <cstdlib>
#include <map>

#include "tests/sim/disk_machine.h"
#include "tests/slowness.h"

using namespace fopd;
using namespace fopd::sim;
using namespace fopd::sim::testing;

namespace {

// Lives that end in any way at any moment, objects written in each; the trace hash.
std::uint64_t run_lives(std::uint64_t seed) {
    core::Random random(seed);
    std::vector<SimulatedDiskOptions> disks;
    const std::uint64_t disk_count = 1 + random.below(3);
    for (std::uint64_t i = 0; i < disk_count; ++i) {
        disks.push_back({.name = "d" + std::to_string(i), .size_bytes = 16U << 20});
    }
    DiskMachine machine(seed, std::move(disks), DiskMachine::Seed::kOfSwarm);
    std::map<std::size_t, std::set<std::uint64_t>> acknowledged;
    std::map<std::string, std::string> ids;
    std::uint64_t number = 0;
    for (int life = 0; life < 6; ++life) {
        machine.node.start();
        // Sometimes it does not get to be ready.
        if (random.below(3) == 0) {
            machine.node.disks().power().cut_at(1 + random.below(80));
            machine.world.run_for(Duration{random.between(0, Duration{30ms}.count())});
            machine.node.lose_power();
            continue;
        }
        REQUIRE(machine.run_until_ready());
        for (const DiskReport& each : machine.reports()) {
            REQUIRE(each.state == std::string("good"));
            const auto known = ids.try_emplace(each.name, each.disk).first;
            REQUIRE(known->second == each.disk);
        }
        for (const auto& [index, numbers] : acknowledged) {
            for (const std::uint64_t each : numbers) REQUIRE(machine.has(index, each));
        }
        const std::uint64_t writes = random.below(30);
        for (std::uint64_t i = 0; i < writes; ++i) {
            const std::size_t index = random.below(disk_count);
            ++number;
            if (machine.put(index, number)) acknowledged[index].insert(number);
        }
        switch (random.below(4)) {
            case 0: machine.stop(); break;
            case 1: machine.node.crash(); break;
            case 2: machine.node.lose_power(); break;
            case 3:  // In the middle of a stop.
                machine.node.terminate();
                machine.node.disks().power().cut_at(1 + random.below(20));
                machine.world.run_for(Duration{random.between(0, Duration{30ms}.count())});
                machine.node.lose_power();
                break;
            default: break;
        }
        if (random.below(4) == 0 && !machine.node.running()) machine.node.disks().lose_indexes();
    }
    if (machine.node.running()) machine.node.crash();
    REQUIRE(machine.start());
    REQUIRE(machine.all_good());
    for (const auto& [index, numbers] : acknowledged) {
        for (const std::uint64_t each : numbers) REQUIRE(machine.has(index, each));
    }
    machine.stop();
    return machine.world.trace_hash();
}

}  // namespace

TEST_CASE("sim disks: nothing acknowledged is lost, however lives end", "[sim][swarm]") {
    std::uint64_t first = 1;
    std::uint64_t count = fopd::testing::few_of(60);
    bool all_twice = false;
    if (const char* const seed = std::getenv("FOPD_SEED"); seed != nullptr) {
        first = std::strtoull(seed, nullptr, 10);
        count = 1;
        all_twice = true;
    } else if (const char* const seeds = std::getenv("FOPD_SWARM_SEEDS"); seeds != nullptr) {
        count = std::strtoull(seeds, nullptr, 10);
        all_twice = true;
    }
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const std::uint64_t hash = run_lives(seed);
        if (all_twice || seed % 4 == 0) {
            REQUIRE(run_lives(seed) == hash);
        }
    }
}

// Goal: whatever befalls a node with a tape library, its drives, its robot and its clients, objects
// of a pool on tape have the bytes that clients were told they have, what has left the disks comes
// back, and tapes have what the records say. Method: as in objects_test.cc, with the simulated
// library; the cartridges are read in the end without the node.
// FOPD_SWARM_SEEDS sets how many seeds; FOPD_SEED runs one, or says which is the first. These run
// twice; without them, every fourth of a few does.

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "tests/sim/seeds.h"
#include "tests/sim/tape_swarm.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::ReplayedStage;
using fopd::sim::testing::run_swarm;
using FaultKind = ObjectFault::Kind;

namespace {

constexpr std::uint64_t kFewTapeSeeds = 40;

std::uint64_t run_tape_seed(std::uint64_t seed) {
    ReplayedStage stage(seed, fopd::sim::testing::options_with_tapes(seed),
                        ReplayedStage::Seed::kOfSwarm);
    stage.must(fopd::sim::testing::live_with_tapes(stage, seed));
    return stage.world().trace_hash();
}

// Writes the cartridge in the framing of SIMH, as far as it can be read.
void write_image(const devices::CartridgeImage& cartridge, const std::string& path) {
    std::ofstream out(path, std::ios::binary);
    const auto put_length = [&out](std::uint32_t length) {
        for (int shift = 0; shift < 32; shift += 8) out.put(static_cast<char>(length >> shift));
    };
    std::vector<std::byte> bytes;
    const devices::RecordMap map = cartridge.map();
    for (std::uint64_t i = 0; i < map.count(); ++i) {
        const devices::TapeRecord record = map.find(i);
        if (!record.readable) break;
        put_length(record.size_bytes);
        if (record.size_bytes == 0) continue;
        bytes.resize(record.size_bytes);
        cartridge.read(i, bytes);
        bytes.resize(record.size_bytes + record.size_bytes % 2);
        out.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
        put_length(record.size_bytes);
    }
    REQUIRE(out.good());
}

}  // namespace

TEST_CASE("sim tapes: what seeds leave is written for others to read", "[.tape-images]") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        ReplayedStage stage(seed, fopd::sim::testing::options_with_tapes(seed),
                            ReplayedStage::Seed::kOfSwarm);
        stage.must(fopd::sim::testing::live_with_tapes(stage, seed));
        const devices::TapeLibraryImage& image = stage.node().library().image();
        for (const std::uint32_t address : image.full_elements()) {
            devices::CartridgeImage& cartridge = *image.at(address);
            write_image(cartridge, std::to_string(seed) + "-" + cartridge.info().barcode + ".tap");
        }
    }
}

TEST_CASE("sim tapes: objects go to tape, leave the disks and come back", "[sim]") {
    ObjectStageOptions options;
    options.user.tapes = true;
    options.tape_pool = {.name = "cold", .staging = "fast", .migrate_age = 5s};
    ReplayedStage stage(1, options);
    stage.must(stage.start());
    stage.work(2, 200);
    stage.must(stage.play());
    stage.must(stage.settle());
    stage.must(stage.sync_tapes());
    stage.must(stage.rest_tapes());
    stage.must(stage.end_and_check_tapes());
    INFO(stage.book().summary());
    CAPTURE(stage.tapes_seen().files, stage.tapes_seen().copies);
    REQUIRE(stage.book().count("release done") > 5);
    REQUIRE(stage.book().count("sync tape done") > 5);
    REQUIRE(stage.book().count("stage done") > 0);
    REQUIRE(stage.tapes_seen().files > 3);
    REQUIRE(stage.tapes_seen().copies > 2);
}

TEST_CASE("sim tapes swarm: what clients are told of objects on tape is true", "[sim][swarm]") {
    run_swarm(kFewTapeSeeds, run_tape_seed);
}

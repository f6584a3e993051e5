// Goal: the load that administrators read is the load that clients made. Method: the real AdminApi
// and Node in the simulated world, with real clients whose calls are counted.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/admin_stage.h"
#include "tests/sim/object_caller.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::AdminStage;
using fopd::sim::testing::ObjectCaller;
using nlohmann::json;

namespace {

const ClusterOptions kQuiet{.nodes = 1, .disks = 2, .clients = 1, .quiet_clients = true};

struct Figures {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;

    bool operator==(const Figures&) const = default;
};

Figures sum(const json& rows) {
    Figures sum;
    for (const json& each : rows) {
        sum.count += each["count"].get<std::uint64_t>();
        sum.bytes += each["bytes"].get<std::uint64_t>();
    }
    return sum;
}

Figures of(const json& rows, const std::string& name) {
    for (const json& each : rows) {
        if (each["name"] == name) return {.count = each["count"], .bytes = each["bytes"]};
    }
    return {};
}

// How many of the latencies of a row are at least so long.
std::uint64_t slower_than(const json& row, Duration limit) {
    std::uint64_t count = 0;
    for (const json& each : row["latencies"]) {
        if (each["up_to_ns"].get<std::int64_t>() >= limit.count()) {
            count += each["count"].get<std::uint64_t>();
        }
    }
    return count;
}

}  // namespace

TEST_CASE("sim admin load: fops are counted by operation, class and principal", "[sim]") {
    AdminStage stage(71, kQuiet);
    CHECK(stage.refused("/v1/load") == "503 the node is starting");
    stage.wait_ready();
    const json before = stage.answer("/v1/load").json;
    CHECK(of(before["ops"], "bulk_echo") == Figures{});

    const fop::FopType* const type = fop::find_fop_type("bulk_echo");
    for (int i = 0; i < 3; ++i) {
        stage.cluster().client(0).call(0, {.type = type, .bytes = 1000, .timeout = 10s});
    }
    stage.run_for(5s);

    const json load = stage.answer("/v1/load").json;
    const Figures echoes = of(load["ops"], "bulk_echo");
    CHECK(echoes.count == 3);
    // The bytes of a fop count once, although they are pulled and pushed back.
    CHECK(echoes.bytes == 3 * 1000);
    CHECK(sum(load["ops"]).count == sum(load["principals"]).count);
    CHECK(sum(load["ops"]).bytes == sum(load["principals"]).bytes);
    CHECK(sum(load["classes"]).bytes == echoes.bytes);
    for (const char* const by : {"ops", "classes", "principals", "devices"}) {
        for (const json& row : load[by]) {
            CAPTURE(row.dump());
            CHECK(slower_than(row, 0s) == row["count"]);
        }
    }
}

TEST_CASE("sim admin load: a rule that holds fops back is in the latencies of their class",
          "[sim]") {
    AdminStage stage(
        72, kQuiet,
        "lrs: { policy: tbf, tbf: { rules: [\"slow op=bulk_echo rate=1/s burst=1\"] } }\n");
    stage.wait_ready();
    const fop::FopType* const type = fop::find_fop_type("bulk_echo");
    for (int i = 0; i < 4; ++i) {
        stage.cluster().client(0).call(0, {.type = type, .bytes = 1000, .timeout = 60s});
    }
    stage.run_for(10s);

    const json load = stage.answer("/v1/load").json;
    REQUIRE(load["classes"].size() == 1);
    CHECK(load["classes"][0]["name"] == "slow{op=bulk_echo}");
    CHECK(load["classes"][0]["count"] == 4);
    CHECK(slower_than(load["classes"][0], 900ms) == 3);
    CHECK(slower_than(load["classes"][0], 10s) == 0);
}

TEST_CASE("sim admin load: devices have what was read and written, also of both localities",
          "[sim]") {
    AdminStage stage(73, kQuiet);
    stage.wait_ready();
    const json before = stage.answer("/v1/load").json;
    ObjectCaller caller(stage);
    const std::vector<std::byte> bytes(1UL << 20, std::byte{7});
    // The disks take turns, and each is on a locality of its own.
    for (int i = 0; i < 4; ++i) caller.put("fast", "object-" + std::to_string(i), bytes);

    const json load = stage.answer("/v1/load").json;
    REQUIRE(load["devices"].size() == 2);
    for (const char* const disk : {"d0", "d1"}) {
        CAPTURE(disk);
        const Figures was = of(before["devices"], disk);
        const Figures now = of(load["devices"], disk);
        CHECK(now.count > was.count);
        CHECK(now.bytes >= was.bytes + 2 * bytes.size());
    }
    CHECK(sum(load["ops"]).bytes >= 4 * bytes.size());
}

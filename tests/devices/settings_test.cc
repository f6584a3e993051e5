#include "devices/settings.h"

#include "config/schema.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::devices;

namespace {

using Devices = std::vector<DeviceSettings>;
using Pools = std::vector<PoolSettings>;

std::expected<config::SnapshotPtr, config::Problems> load(std::string_view text) {
    config::Schema schema;
    schema.add(pools_section());
    schema.add(devices_section());
    return schema.load_text(text, "fopd.yaml");
}

std::string first_problem(std::string_view text) {
    const auto loaded = load(text);
    REQUIRE_FALSE(loaded.has_value());
    return loaded.error().front().key + ": " + loaded.error().front().wrong;
}

}  // namespace

TEST_CASE("devices settings: disks and pools are what the file says", "[devices]") {
    const auto loaded = load(R"(
pools:
  - { name: fast, family: disk, quota: 100TiB }
  - { name: slow }
devices:
  - { name: d0, path: /var/lib/fopd/d0.img, size: 1TiB, pool: fast }
  - { name: nvme0, path: /dev/disk/by-id/nvme-x, pool: slow }
)");
    REQUIRE(loaded.has_value());
    const auto& pools = (*loaded)->get<Pools>();
    const auto& devices = (*loaded)->get<Devices>();

    REQUIRE(pools.size() == 2);
    REQUIRE(pools[0].quota_bytes == 100ULL << 40);
    REQUIRE_FALSE(pools[1].quota_bytes.has_value());
    REQUIRE(devices.size() == 2);
    REQUIRE(devices[0].size_bytes == 1ULL << 40);
    REQUIRE_FALSE(devices[1].size_bytes.has_value());
    REQUIRE(check_devices(devices, pools).empty());
}

TEST_CASE("devices settings: a node without either is valid", "[devices]") {
    const auto loaded = load("");
    REQUIRE(loaded.has_value());
    REQUIRE((*loaded)->get<Devices>().empty());
    REQUIRE((*loaded)->get<Pools>().empty());
}

TEST_CASE("devices settings: what makes no sense is refused where it stands", "[devices]") {
    REQUIRE_THAT(first_problem("pools: [ { name: cold, family: paper } ]"),
                 ContainsSubstring("pools[0].family"));
    REQUIRE_THAT(first_problem("pools: [ { name: cold, family: tape } ]"),
                 ContainsSubstring("pools[0].staging"));
    REQUIRE_THAT(first_problem("pools: [ { name: fast, copies: 2 } ]"),
                 ContainsSubstring("pools[0].copies: only a tape pool has copies"));
    REQUIRE_THAT(first_problem("pools: [ { name: c, family: tape, staging: fast, copies: 5 } ]"),
                 ContainsSubstring("pools[0].copies"));
    REQUIRE_THAT(first_problem("pools: [ { name: a }, { name: a } ]"),
                 ContainsSubstring("pools[1]"));
    REQUIRE_THAT(first_problem("devices: [ { name: d0, pool: fast } ]"),
                 ContainsSubstring("devices[0].path"));
    REQUIRE_THAT(first_problem("devices: [ { name: d0, path: /d, pool: fast, size: 1MiB } ]"),
                 ContainsSubstring("devices[0].size"));
    REQUIRE_THAT(first_problem("devices: [ { name: d0, path: /dev/sdx, pool: fast, size: 1GiB } ]"),
                 ContainsSubstring("the path is that of a device"));
}

TEST_CASE("devices settings: a pool that is none and a path twice are refused", "[devices]") {
    const Pools pools{{.name = "fast"}};
    const DeviceSettings first{.name = "d0", .path = "/a", .pool = "fast"};
    const DeviceSettings twin{.name = "d1", .path = "/a", .pool = "fast"};
    const DeviceSettings stray{.name = "d2", .path = "/b", .pool = "slow"};

    REQUIRE(check_devices({first}, pools).empty());
    REQUIRE(check_devices({first, twin, stray}, pools) ==
            std::vector<std::string>{"devices d0 and d1 have one path, /a",
                                     "device d2 is of pool slow, which pools does not have"});
    const std::vector<PoolSettings> with_tape{
        pools.front(), {.name = "cold", .family = Family::kTape, .staging = "fast"}};
    DeviceSettings of_tape = twin;
    of_tape.path = "/b";
    of_tape.pool = "cold";
    REQUIRE(check_devices({first, of_tape}, with_tape) ==
            std::vector<std::string>{"device d1 is of pool cold, which is a tape pool"});
}

TEST_CASE("devices settings: a tape pool is served by a library that has it", "[devices]") {
    const Pools pools{{.name = "fast"},
                      {.name = "cold", .family = Family::kTape, .staging = "fast"},
                      {.name = "deep", .family = Family::kTape, .staging = "fast"}};
    const std::vector<std::string> one{"cold"};
    const std::vector<std::string> both{"deep", "cold"};

    REQUIRE(check_staging(pools).empty());
    const auto mistakes = check_libraries(pools, one);
    REQUIRE(mistakes.size() == 1);
    REQUIRE(mistakes.front().wrong == "tape pool deep needs a library that has its tapes");
    REQUIRE(check_libraries(pools, both).empty());
}

TEST_CASE("devices settings: the staging of a tape pool is a disk pool", "[devices]") {
    const std::string right = "write the name of a pool of the family disk";
    const Pools pools{{.name = "cold", .family = Family::kTape, .staging = "fats"},
                      {.name = "deep", .family = Family::kTape, .staging = "cold"}};

    const auto mistakes = check_staging(pools);

    REQUIRE(mistakes.size() == 2);
    CHECK(mistakes[0].wrong == "the staging of pool cold, fats, is not in pools");
    CHECK(mistakes[1].wrong == "the staging of pool deep, cold, is not a disk pool");
    CHECK(mistakes[0].right == right);
    CHECK(mistakes[1].right == right);
}

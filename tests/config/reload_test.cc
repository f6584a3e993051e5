// Goal: a reload says what changed, takes what can change at run time and leaves the rest as it
// was.
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "tests/catch.h"
#include "tests/config/example_schema.h"

namespace reload_test {

using namespace fopd;
using namespace fopd::config;

namespace {

const Schema kSchema = example::schema();

SnapshotPtr load(std::string_view text) {
    const auto loaded = kSchema.load_text(text, "f.yaml");
    if (!loaded) FAIL(to_string(loaded.error().front()));
    return *loaded;
}

// "path: old -> new (live)".
std::vector<std::string> lines(const Changes& changes) {
    std::vector<std::string> text;
    for (const Change& change : changes) {
        text.push_back(change.path + ": " + change.old_value + " -> " + change.new_value +
                       (change.reload == Reload::kLive ? " (live)" : " (restart)"));
    }
    return text;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("config reload: nothing changed is no change", "[config]") {
    const std::string text = "storage: {pools: [{name: a}]}\nlimits: {buffers: 2MiB}";
    REQUIRE(merge(load(text), load(text)).changes.empty());
    REQUIRE(
        merge(load("limits: {buffers: 2MiB}"), load("limits: {buffers: 2048KiB}")).changes.empty());
}

TEST_CASE("config reload: every changed key is named with both values, in the schema's order",
          "[config]") {
    const auto old = load("");
    const auto next = load(
        "storage: {weights: [1, 2, 3]}\n"
        "limits: {tape: {order: required}, cores: 2}\n"
        "node: {motto: \"a b\", name: c, key_file: /k}\n");

    REQUIRE(lines(merge(old, next).changes) ==
            Lines{
                "node.name: node-a -> c (restart)",
                "node.motto: \"\" -> \"a b\" (live)",
                "node.key_file: none -> /k (restart)",
                "limits.cores: auto -> 2 (restart)",
                "limits.tape.order: none -> required (live)",
                "storage.weights: [40, 40, 20] -> [1, 2, 3] (live)",
            });
}

TEST_CASE("config reload: afterwards live keys are new and the others old", "[config]") {
    const auto old = load("node: {name: a, motto: a}\nlimits: {tape: {order: none}}");
    const auto next =
        load("node: {name: b, motto: b}\nlimits: {tape: {order: required}, cores: 9}");
    const std::string old_text = print_effective(*old);
    const std::string next_text = print_effective(*next);

    const auto merged = merge(old, next);

    REQUIRE(merged.snapshot->get<example::Node>().name == "a");
    REQUIRE(merged.snapshot->get<example::Node>().motto == "b");
    REQUIRE_FALSE(merged.snapshot->get<example::Limits>().cores.has_value());
    REQUIRE(merged.snapshot->get<example::Limits>().tape.order == example::Mode::kRequired);
    REQUIRE(print_effective(*old) == old_text);
    REQUIRE(print_effective(*next) == next_text);
}

TEST_CASE("config reload: pending restarts are reported by each reload", "[config]") {
    const auto next = load("node: {name: b, motto: b}");
    const auto merged = merge(load(""), next);

    REQUIRE(lines(merge(merged.snapshot, next).changes) ==
            Lines{"node.name: node-a -> b (restart)"});
}

TEST_CASE("config reload: items of a list are told apart by their name", "[config]") {
    const auto old = load("storage: {pools: [{name: a, quota: 1G}, {name: b, quota: 2G}]}");

    SECTION("the same items: each key counts for itself") {
        const auto next =
            load("storage: {pools: [{name: a, quota: 1G}, {name: b, quota: 5G, family: tape}]}");
        const auto merged = merge(old, next);

        REQUIRE(lines(merged.changes) == Lines{"storage.pools[1].quota: 2GiB -> 5GiB (live)",
                                               "storage.pools[1].family: disk -> tape (restart)"});
        const auto& pools = merged.snapshot->get<example::Storage>().pools;
        REQUIRE(pools[1].quota == std::uint64_t{5} << 30);
        REQUIRE(pools[1].family == "disk");
    }
    SECTION("two items swapped: nothing of one gets into the other") {
        const auto next = load("storage: {pools: [{name: b, quota: 2G}, {name: a, quota: 1G}]}");
        const auto merged = merge(old, next);

        REQUIRE(merged.changes.size() == 1);
        REQUIRE(merged.changes[0].path == "storage.pools");
        REQUIRE(merged.changes[0].reload == Reload::kRestart);
        REQUIRE(print_effective(*merged.snapshot) == print_effective(*old));
    }
    SECTION("one item more: the list waits, and live keys of the items before do not") {
        const auto next = load(
            "storage: {pools: [{name: c}, {name: b, quota: 2G, family: tape}, {name: a, quota: "
            "9G}]}");
        const auto merged = merge(old, next);

        REQUIRE(merged.changes.size() == 2);
        REQUIRE(lines(merged.changes)[0] == "storage.pools[2].quota: 1GiB -> 9GiB (live)");
        REQUIRE(merged.changes[1].path == "storage.pools");
        REQUIRE(merged.changes[1].reload == Reload::kRestart);
        const auto& pools = merged.snapshot->get<example::Storage>().pools;
        REQUIRE(pools.size() == 2);
        REQUIRE(pools[0].name == "a");
        REQUIRE(pools[0].quota == std::uint64_t{9} << 30);
        REQUIRE(pools[1].name == "b");
        REQUIRE(pools[1].family == "disk");

        // The next reload of the same file has only the list to report.
        const auto again = merge(merged.snapshot, next);
        REQUIRE(again.changes.size() == 1);
        REQUIRE(again.changes[0].path == "storage.pools");
    }
    SECTION("one item less: so, too") {
        const auto merged = merge(old, load("storage: {pools: [{name: b, quota: 3G}]}"));

        REQUIRE(merged.changes.size() == 2);
        REQUIRE(lines(merged.changes)[0] == "storage.pools[0].quota: 2GiB -> 3GiB (live)");
        REQUIRE(merged.changes[1].reload == Reload::kRestart);
        const auto& pools = merged.snapshot->get<example::Storage>().pools;
        REQUIRE(pools.size() == 2);
        REQUIRE(pools[1].quota == std::uint64_t{3} << 30);
    }
}

TEST_CASE("config reload: a section whose checks refuse the mixture waits as a whole", "[config]") {
    // wait_min is live, wait_max is not: the new minimum does not go with the old maximum.
    const auto old = load("limits: {tape: {wait_min: 1s, wait_max: 2s}}");
    const auto next =
        load("node: {motto: b}\nlimits: {mode: none, tape: {wait_min: 3s, wait_max: 4s}}");

    const auto merged = merge(old, next);

    REQUIRE(lines(merged.changes) == Lines{
                                         "node.motto: \"\" -> b (live)",
                                         "limits.mode: required -> none (restart)",
                                         "limits.tape.wait_min: 1s -> 3s (restart)",
                                         "limits.tape.wait_max: 2s -> 4s (restart)",
                                     });
    REQUIRE(merged.snapshot->get<example::Node>().motto == "b");
    REQUIRE(merged.snapshot->get<example::Limits>().tape.wait_min == 1s);
    REQUIRE(merged.snapshot->get<example::Limits>().mode == example::Mode::kRequired);
}

TEST_CASE("config reload: the configuration in force can always be loaded", "[config]") {
    const std::vector<std::string> texts{
        "",
        "node: {name: b, motto: b}",
        "limits: {tape: {wait_min: 3s, wait_max: 4s}, cores: 3}",
        "limits: {tape: {wait_min: 1s, wait_max: 1s}, foms_max: 3}",
        "storage: {pools: [{name: a}, {name: b}]}",
        "storage: {pools: [{name: b, quota: 7}, {name: a}], peers: [\"a:1\"]}",
    };
    for (const std::string& from : texts) {
        for (const std::string& to : texts) {
            CAPTURE(from, to);
            const auto merged = merge(load(from), load(to));

            const auto again = load(print_effective(*merged.snapshot));

            REQUIRE(merge(merged.snapshot, again).changes.empty());
        }
    }
}

}  // namespace reload_test

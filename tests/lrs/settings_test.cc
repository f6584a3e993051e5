#include "lrs/settings.h"

#include "config/current.h"
#include "config/schema.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

std::expected<config::SnapshotPtr, config::Problems> load(std::string_view text) {
    config::Schema schema;
    schema.add(lrs_section());
    return schema.load_text(text, "fopd.yaml");
}

}  // namespace

TEST_CASE("lrs settings: every policy can be named", "[lrs]") {
    for (const PolicyEntry& entry : policies()) {
        CAPTURE(entry.name);
        const auto loaded = load("lrs: { policy: " + std::string(entry.name) + " }");
        REQUIRE(loaded.has_value());
        CHECK((*loaded)->get<LrsSettings>().policy == &entry);
    }
}

TEST_CASE("lrs settings: without a word it is fifo and 128 foms", "[lrs]") {
    const auto loaded = load("");
    REQUIRE(loaded.has_value());
    CHECK((*loaded)->get<LrsSettings>().policy->name == "fifo");
    CHECK((*loaded)->get<LrsSettings>().max_foms == 128);
}

TEST_CASE("lrs settings: each policy has its map", "[lrs]") {
    const auto loaded = load(
        "lrs:\n"
        "  policy: deadline\n"
        "  crr: { quantum: 3 }\n"
        "  orr: { quantum: 16, ops: both }\n"
        "  trr: { ops: writes }\n"
        "  delay: { min: 1500us, max: 20ms, percent: 7 }\n"
        "  deadline: { policy: crr, wait_max: 250ms }\n");
    REQUIRE(loaded.has_value());
    const auto& settings = (*loaded)->get<LrsSettings>();
    CHECK(settings.crr.quantum == 3);
    CHECK(settings.orr == ByPlaceSettings{.quantum = 16, .ops = OrderedOps::kBoth});
    CHECK(settings.trr == ByPlaceSettings{.quantum = 256, .ops = OrderedOps::kWrites});
    CHECK(settings.delay == DelaySettings{.min = 1500us, .max = 20ms, .percent = 7});
    CHECK(settings.deadline.policy->name == "crr");
    CHECK(settings.deadline.wait_max == 250ms);
    CHECK(settings.make({.seed = 1}) != nullptr);
}

TEST_CASE("lrs settings: what localities have in common is the node's, also below a deadline",
          "[lrs]") {
    const auto of_node = [](std::string_view text) {
        const auto loaded = load(text);
        REQUIRE(loaded.has_value());
        return (*loaded)->get<LrsSettings>().is_of_node();
    };
    CHECK_FALSE(of_node(""));
    CHECK(of_node("lrs: { policy: tbf }"));
    CHECK(of_node("lrs: { policy: mclock }"));
    CHECK(of_node("lrs: { policy: deadline, deadline: { policy: tbf } }"));
    CHECK_FALSE(of_node("lrs: { policy: deadline, tbf: { rules: [ \"a * rate=1/s\" ] } }"));
}

TEST_CASE("lrs settings: localities share what is of the policy in force, and keep it", "[lrs]") {
    PolicyNode node(1);
    const auto share = [&node](std::string_view text) {
        const auto loaded = load(text);
        REQUIRE(loaded.has_value());
        return (*loaded)->get<LrsSettings>().share(node, Instant{});
    };
    const PolicyShare none = share("");
    CHECK(none.tbf.buckets == nullptr);
    CHECK(none.mclock.buckets == nullptr);
    const PolicyShare mclock = share("lrs: { policy: mclock, mclock: { rules: [ \"a job=a\" ] } }");
    CHECK(mclock.tbf.buckets == nullptr);
    REQUIRE(mclock.mclock.buckets != nullptr);
    CHECK(mclock.mclock.rules->rules().front().name == "a");
    const PolicyShare tbf = share("lrs: { policy: deadline, deadline: { policy: tbf } }");
    CHECK(tbf.tbf.buckets != nullptr);
    CHECK(tbf.mclock.buckets == nullptr);
    const PolicyShare again = share("lrs: { policy: mclock, mclock: { rules: [ \"b job=b\" ] } }");
    CHECK(again.mclock.buckets == mclock.mclock.buckets);
    CHECK(again.mclock.rules->rules().front().name == "b");
}

TEST_CASE("lrs settings: all of them change at run time", "[lrs]") {
    config::Schema schema;
    schema.add(lrs_section());
    const auto before = schema.load_text("", "fopd.yaml");
    const auto after = schema.load_text(
        "lrs: { policy: orr, max_foms: 7, crr: { quantum: 2 }, orr: { quantum: 2, ops: writes },"
        " trr: { quantum: 3 }, delay: { percent: 4 }, deadline: { wait_max: 5s, policy: orr } }",
        "fopd.yaml");
    REQUIRE(before.has_value());
    REQUIRE(after.has_value());
    config::Current current(*before);

    const auto applied = current.apply(*after);

    CHECK(applied.live.size() == 9);
    CHECK(applied.waiting.empty());
}

TEST_CASE("lrs settings: what is impossible is refused", "[lrs]") {
    for (const char* text :
         {"crr: { quantum: 0 }", "crr: { quantum: 65536 }", "orr: { ops: some }",
          "delay: { min: 2s, max: 1s }", "delay: { percent: 101 }", "delay: { percent: -1 }",
          "deadline: { policy: deadline }", "deadline: { wait_max: 0s }", "fifo: {}"}) {
        CAPTURE(text);
        CHECK_FALSE(load("lrs: { " + std::string(text) + " }").has_value());
    }
}

TEST_CASE("lrs settings: an unknown policy and no foms are refused", "[lrs]") {
    CHECK_FALSE(load("lrs: { policy: lifo }").has_value());
    CHECK_FALSE(load("lrs: { max_foms: 0 }").has_value());
}

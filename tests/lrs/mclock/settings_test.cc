#include "lrs/mclock/settings.h"

#include <string>

#include "config/schema.h"
#include "config/section.h"
#include "config/types.h"
#include "lrs/settings.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

std::expected<config::SnapshotPtr, config::Problems> load_mclock(const std::string& map) {
    config::Schema schema;
    schema.add(lrs_section());
    return schema.load_text("lrs:\n  policy: mclock\n  mclock:\n" + map, "f.yaml");
}

// What is said about these settings; nothing when they are taken.
std::string mclock_problems(const std::string& map) {
    const auto loaded = load_mclock(map);
    std::string said;
    if (loaded) return said;
    for (const config::Problem& problem : loaded.error()) said += to_string(problem) + "\n";
    return said;
}

bool has_words(const std::string& said, std::string_view words) {
    return said.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("lrs mclock settings: by default all have the same share", "[lrs]") {
    const auto loaded = load_mclock("    rules: []\n");
    REQUIRE(loaded.has_value());
    const MclockSettings& settings = (*loaded)->get<LrsSettings>().mclock;
    CHECK(settings == MclockSettings{});
    CHECK_FALSE(settings.capacity.has_value());
    CHECK(settings.cost_unit == 64 * 1024);
    CHECK((*loaded)->get<LrsSettings>().decides().scope == PolicyEntry::Scope::kNode);
}

TEST_CASE("lrs mclock settings: all of them", "[lrs]") {
    const auto loaded = load_mclock(
        "    capacity: 20000/s\n    cost_unit: none\n    rules:\n"
        "      - gold user=ann reservation=20000/s weight=4\n");
    REQUIRE(loaded.has_value());
    const MclockSettings& settings = (*loaded)->get<LrsSettings>().mclock;
    CHECK(settings.capacity == 20'000);
    CHECK_FALSE(settings.cost_unit.has_value());
    CHECK(settings.rules.size() == 1);
}

TEST_CASE("lrs mclock settings: reservations that do not fit are refused, with the figures",
          "[lrs]") {
    const std::string rules =
        "    rules:\n      - gold user={ann bob} reservation=500/s\n"
        "      - silver job=x reservation=200/s\n";
    CHECK(mclock_problems("    capacity: 1200/s\n" + rules).empty());
    const std::string said = mclock_problems("    capacity: 1199/s\n" + rules);
    CAPTURE(said);
    CHECK(has_words(said, "f.yaml:4:15: lrs.mclock.capacity"));
    CHECK(has_words(said, "1200/s in all (gold 2 x 500/s, silver 200/s)"));
    CHECK(has_words(said, "a capacity of 1199/s"));
}

TEST_CASE("lrs mclock settings: reservations need a capacity", "[lrs]") {
    const std::string said =
        mclock_problems("    rules:\n      - gold user=ann reservation=500/s\n");
    CAPTURE(said);
    CHECK(has_words(said, "lrs.mclock.capacity"));
    CHECK(has_words(said, "500/s in all (gold 500/s)"));
}

TEST_CASE("lrs mclock settings: a wrong rule is told with its place in the file and in the rule",
          "[lrs]") {
    const std::string said =
        mclock_problems("    rules:\n      - a job=a weight=1\n      - b job=b weight=-1\n");
    CAPTURE(said);
    CHECK(has_words(said, "f.yaml:6:9: lrs.mclock.rules[1]: column 16 of the rule"));
    CHECK(has_words(mclock_problems("    rules:\n      - a job=a\n      - a job=b\n"),
                    "f.yaml:6:9: lrs.mclock.rules[1]: there is a rule \"a\" already"));
}

TEST_CASE("lrs mclock settings: impossible values are refused", "[lrs]") {
    for (const char* map : {"    capacity: 0/s\n", "    capacity: 5MB/s\n", "    capacity: fast\n",
                            "    cost_unit: 0\n", "    cost_unit: 100\n", "    weight: 1\n",
                            "    rules: a job=a\n"}) {
        CAPTURE(map);
        CHECK_FALSE(mclock_problems(map).empty());
    }
}

#include "lrs/settings.h"

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

TEST_CASE("lrs settings: an unknown policy and no foms are refused", "[lrs]") {
    CHECK_FALSE(load("lrs: { policy: lifo }").has_value());
    CHECK_FALSE(load("lrs: { max_foms: 0 }").has_value());
}

// Goal: a reload takes over the values that can change at run time, and lists the others.
#include "config/current.h"

#include <string>

#include "tests/catch.h"
#include "tests/config/example_schema.h"

using namespace fopd;
using namespace fopd::config;

namespace {

const Schema kSchema = example::schema();

SnapshotPtr load(const std::string& text) {
    const auto loaded = kSchema.load_text(text, "f.yaml");
    if (!loaded) FAIL(to_string(loaded.error().front()));
    return *loaded;
}

}  // namespace

TEST_CASE("config current: apply changes live keys and lists those that need a restart",
          "[config]") {
    Current current(load(""));

    const auto applied = current.apply(load("node: {name: b, motto: b}"));

    REQUIRE(applied.live.size() == 1);
    REQUIRE(applied.live[0].path == "node.motto");
    REQUIRE(applied.waiting.size() == 1);
    REQUIRE(applied.waiting[0].path == "node.name");
    REQUIRE(current.snapshot()->get<example::Node>().motto == "b");
    REQUIRE(current.snapshot()->get<example::Node>().name == "node-a");
}

TEST_CASE("config current: a reload without live changes leaves the snapshot in place",
          "[config]") {
    Current current(load(""));
    const SnapshotPtr before = current.snapshot();

    const auto applied = current.apply(load("node: {name: b}"));

    REQUIRE(applied.live.empty());
    REQUIRE(applied.waiting.size() == 1);
    REQUIRE(current.snapshot() == before);
}

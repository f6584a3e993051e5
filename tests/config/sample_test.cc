// Goal: the sample file cannot drift from the program, because it is made of the same declarations.
#include "config/sample.h"

#include <sstream>
#include <string>

#include "tests/catch.h"
#include "tests/config/example_schema.h"

using namespace fopd::config;

TEST_CASE("config sample: loading it gives the defaults", "[config]") {
    const Schema schema = example::schema();
    const auto defaults = schema.load_text("", "empty.yaml");
    const auto sample = schema.load_text(annotated_sample(schema), "sample.yaml");

    REQUIRE(sample.has_value());
    REQUIRE(print_effective(**sample) == print_effective(**defaults));
}

TEST_CASE("config sample: a required key has its example", "[config]") {
    const Schema schema = example::required_schema();
    const auto sample = schema.load_text(annotated_sample(schema), "sample.yaml");

    REQUIRE(sample.has_value());
    REQUIRE((*sample)->get<example::Identity>().name == "node-a");
}

TEST_CASE("config sample: every key says what it is, what is allowed, its default and when it acts",
          "[config]") {
    const std::string sample = annotated_sample(example::schema());

    REQUIRE_THAT(sample, ContainsSubstring(R"(
# Who this node is and where it keeps its data.
node:
  # The name in logs and views.
  # Allowed: text of 1 to 16 letters, digits, '.', '_' or '-'. Default: node-a. Needs a restart.
  name: node-a
)"));
    REQUIRE_THAT(sample, ContainsSubstring(R"(
  # How long running operations may take to end when the daemon stops.
  # Allowed: a duration such as 30s or 250ms, from 1s to 1h. Default: 30s. Can change at run time.
  drain_timeout: 30s
)"));
    REQUIRE_THAT(sample,
                 ContainsSubstring("Allowed: required, optional or none. Default: required."));
}

TEST_CASE("config sample: an item of a list of maps is there to be uncommented", "[config]") {
    const Schema schema = example::schema();
    std::istringstream lines(annotated_sample(schema));
    std::string uncommented;
    bool is_in_item = false;
    for (std::string line; std::getline(lines, line);) {
        const bool is_start = line == "  # An item:";
        if (line == "  pools: []") line = "  pools:";
        if (is_in_item && !line.starts_with("  #  ")) is_in_item = false;
        if (is_in_item) line.erase(2, 1);
        is_in_item = is_in_item || is_start;
        uncommented += line + "\n";
    }

    const auto loaded = schema.load_text(uncommented, "sample.yaml");

    REQUIRE(loaded.has_value());
    const auto& pools = (*loaded)->get<example::Storage>().pools;
    REQUIRE(pools.size() == 1);
    REQUIRE(pools[0].name == "fast");
    REQUIRE(pools[0].age_max == std::chrono::hours(1));
}

TEST_CASE("config sample: no line is longer than 100 columns", "[config]") {
    std::istringstream lines(annotated_sample(example::schema()));
    for (std::string line; std::getline(lines, line);) REQUIRE(line.size() <= 100);
}

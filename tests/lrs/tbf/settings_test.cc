#include "lrs/tbf/settings.h"

#include <string>

#include "config/schema.h"
#include "config/section.h"
#include "config/types.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

struct Around {
    TbfSettings tbf;
};

config::Schema schema_around_tbf() {
    config::Section<Around> section("lrs", "Around it.");
    section.field<TbfSettings>("tbf", &Around::tbf, config::map_of(tbf_record()), "Rules.");
    config::Schema schema;
    schema.add(std::move(section));
    return schema;
}

// What is said about this text; nothing when it is taken.
std::string problems_of(std::string_view text) {
    const auto loaded = schema_around_tbf().load_text(text, "f.yaml");
    std::string said;
    if (loaded) return said;
    for (const config::Problem& problem : loaded.error()) said += to_string(problem) + "\n";
    return said;
}

bool says(const std::string& said, std::string_view words) {
    return said.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("lrs tbf settings: rules are a list, and there are none by default", "[lrs]") {
    const auto empty = schema_around_tbf().load_text("", "f.yaml");
    REQUIRE(empty.has_value());
    CHECK((*empty)->get<Around>().tbf.rules.empty());

    const auto loaded = schema_around_tbf().load_text(
        "lrs: { tbf: { rules: [ \"small op=read&size<64k rate=20000/s burst=64\" ] } }", "f.yaml");
    REQUIRE(loaded.has_value());
    CHECK((*loaded)->get<Around>().tbf.rules ==
          std::vector<std::string>{"small op=read&size<64k rate=20000/s burst=64"});
}

TEST_CASE("lrs tbf settings: a wrong rule is told with its place in the file and in the rule",
          "[lrs]") {
    const std::string said = problems_of(
        "lrs:\n  tbf:\n    rules:\n      - a job=a rate=1/s\n      - b job=b rate=-1/s\n");
    CAPTURE(said);
    CHECK(says(said, "f.yaml:5:9: lrs.tbf.rules[1]: column 14 of the rule"));
    CHECK(says(said, "negative"));
}

TEST_CASE("lrs tbf settings: two rules of one name are refused", "[lrs]") {
    const std::string said = problems_of(
        "lrs:\n  tbf:\n    rules:\n      - a job=a rate=1/s\n      - a job=b rate=1/s\n");
    CAPTURE(said);
    CHECK(says(said, "f.yaml:5:9: lrs.tbf.rules[1]: there is a rule \"a\" already"));
}

TEST_CASE("lrs tbf settings: of a cluster, its interval and what a server keeps", "[lrs]") {
    const TbfSettings usual;
    CHECK(usual.cluster_interval == 100ms);
    CHECK_FALSE(usual.cut_off.has_value());
    const auto loaded = schema_around_tbf().load_text(
        "lrs: { tbf: { cluster_interval: 50ms, cut_off: 20 } }", "f.yaml");
    REQUIRE(loaded.has_value());
    CHECK((*loaded)->get<Around>().tbf.cluster_interval == 50ms);
    CHECK((*loaded)->get<Around>().tbf.cut_off == 20);
    CHECK(says(problems_of("lrs: { tbf: { cut_off: 0 } }"), "lrs.tbf.cut_off"));
    CHECK(says(problems_of("lrs: { tbf: { cut_off: 101 } }"), "lrs.tbf.cut_off"));
    CHECK(says(problems_of("lrs: { tbf: { cluster_interval: 1ms } }"), "cluster_interval"));
}

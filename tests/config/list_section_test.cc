// Goal: a section that is a list is read, printed, shown as a sample and reloaded like one of keys.
#include "config/list_section.h"

#include "config/current.h"
#include "config/sample.h"
#include "config/schema.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::config;

namespace {

struct Share {
    std::string name;
    std::uint64_t limit = 10;
    std::string kind = "paper";
};
using Shares = std::vector<Share>;

Schema schema() {
    Record<Share> record;
    record.field("name", &Share::name, text({.length_min = 1}), "What it is called.",
                 {.need = Need::kRequired, .example = "fast"});
    record.field("limit", &Share::limit, size({.max = 1000}), "What it may hold.",
                 {.reload = Reload::kLive});
    record.field("kind", &Share::kind, text(), "What it is made of.");
    record.identified_by("name");
    Schema schema;
    schema.add(ListSection<Share>("shares", "Who gets what.", std::move(record)));
    return schema;
}

SnapshotPtr load(const Schema& of, std::string_view text) {
    const auto loaded = of.load_text(text, "fopd.yaml");
    REQUIRE(loaded.has_value());
    return *loaded;
}

Problem problem(std::string_view text) {
    const auto loaded = schema().load_text(text, "fopd.yaml");
    REQUIRE_FALSE(loaded.has_value());
    return loaded.error().front();
}

}  // namespace

TEST_CASE("config list section: holds the items of the file", "[config]") {
    const auto snapshot = load(schema(), "shares: [ { name: a, limit: 5 }, { name: b } ]");
    const auto& shares = snapshot->get<Shares>();
    REQUIRE(shares.size() == 2);
    REQUIRE(shares[0].limit == 5);
    REQUIRE(shares[1].name == "b");
    REQUIRE(shares[1].limit == 10);
    REQUIRE(print_effective(*load(schema(), print_effective(*snapshot))) ==
            print_effective(*snapshot));
}

TEST_CASE("config list section: is empty when it is left out, or nothing is in it", "[config]") {
    REQUIRE(load(schema(), "")->get<Shares>().empty());
    REQUIRE(load(schema(), "shares:")->get<Shares>().empty());
    REQUIRE(load(schema(), "shares: []")->get<Shares>().empty());
}

TEST_CASE("config list section: a problem names the key of its item", "[config]") {
    REQUIRE(problem("shares: { name: a }").key == "shares");
    REQUIRE(problem("shares: [ { limit: 1 } ]").key == "shares[0].name");
    REQUIRE(problem("shares: [ { name: a, limit: 2000 } ]").key == "shares[0].limit");
    REQUIRE(problem("shares: [ { name: a }, { name: a } ]").key == "shares[1].name");
    REQUIRE(problem("shares: [ { name: a, size: 1 } ]").key == "shares[0].size");
}

TEST_CASE("config list section: its sample loads, and shows an item", "[config]") {
    const std::string sample = annotated_sample(schema());
    REQUIRE(load(schema(), sample)->get<Shares>().empty());
    REQUIRE_THAT(sample, ContainsSubstring("# Who gets what."));
    REQUIRE_THAT(sample, ContainsSubstring("\nshares: []\n"));
    REQUIRE_THAT(sample, ContainsSubstring("- name: fast\n"));
}

TEST_CASE("config list section: its sample says whether items can change at run time", "[config]") {
    Record<Share> record;
    record.field("name", &Share::name, text(), "What it is called.");
    record.identified_by("name");
    Schema live;
    live.add(ListSection<Share>("shares", "Who gets what.", std::move(record), ListRule{},
                                Reload::kLive));
    REQUIRE_THAT(annotated_sample(live),
                 ContainsSubstring("Default: []. Can change at run time.\nshares: []\n"));
    REQUIRE_THAT(annotated_sample(schema()),
                 ContainsSubstring("Default: []. Needs a restart.\nshares: []\n"));
}

TEST_CASE("config list section: live keys of unchanged items change at run time", "[config]") {
    const Schema one = schema();
    const auto old = load(one, "shares: [ { name: a, limit: 5 } ]");

    const auto merged = merge(old, load(one, "shares: [ { name: a, limit: 6, kind: tin } ]"));
    REQUIRE(merged.snapshot->get<Shares>()[0].limit == 6);
    REQUIRE(merged.snapshot->get<Shares>()[0].kind == "paper");
    REQUIRE(merged.changes.size() == 2);

    const auto more = merge(old, load(one, "shares: [ { name: b }, { name: a, limit: 7 } ]"));
    REQUIRE(more.snapshot->get<Shares>().size() == 1);
    REQUIRE(more.snapshot->get<Shares>()[0].limit == 7);

    const auto other = merge(old, load(one, "shares: [ { name: b, limit: 6 } ]"));
    REQUIRE(other.snapshot->get<Shares>()[0].name == "a");
    REQUIRE(other.changes.size() == 1);
    REQUIRE(other.changes[0].reload == Reload::kRestart);
}

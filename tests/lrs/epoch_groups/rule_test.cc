// Goal: the rules of epoch_groups as docs/formats/rules.md has them, what is said about others, and
// changes of them by hand.

#include "lrs/epoch_groups/rule.h"

#include <string>
#include <vector>

#include "lrs/classes/described_request.h"
#include "lrs/policies.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

GroupRule group_rule(std::string_view text) {
    CAPTURE(text);
    auto rule = parse_group_rule(text);
    if (!rule) INFO(to_string(rule.error()));
    REQUIRE(rule.has_value());
    return *std::move(rule);
}

std::string group_mistake(std::string_view text) {
    const auto rule = parse_group_rule(text);
    REQUIRE_FALSE(rule.has_value());
    return to_string(rule.error());
}

bool tells(const std::string& said, std::string_view words) {
    CAPTURE(said);
    return said.find(words) != std::string::npos;
}

std::string group_of(const GroupRules& rules, std::string_view request) {
    const auto described = DescribedRequest::parse(request);
    REQUIRE(described.has_value());
    const RequestAttributes& attributes = (*described)->attributes();
    return rules.rule_for(attributes).class_name(attributes);
}

}  // namespace

TEST_CASE("lrs group rule: all that can be said, and read back", "[lrs]") {
    const GroupRule rule = group_rule("zone-a address=10.1.0.0/16 weight=4 rank=3 by=none");
    CHECK(rule.weight == 4);
    CHECK(rule.rank == 3);
    CHECK(rule.classes_by.is_empty());
    for (const char* text : {"a job=*", "a job=* weight=7", "a user={x y} weight=1000 by=job",
                             "a job=x by=none", "a * rank=5", "default * by=job", "default *"}) {
        CHECK(group_rule(text).text() == text);
    }
    CHECK(group_rule("a job=*").weight == 1);
}

TEST_CASE("lrs group rule: mistakes have a column and a remedy", "[lrs]") {
    CHECK(tells(group_mistake("a job=x weight=0"), "column 16"));
    CHECK(tells(group_mistake("a job=x weight=1001"), "column 16"));
    CHECK(tells(group_mistake("a job=x weight=2 weight=2"), "column 18"));
    CHECK(tells(group_mistake("a job=x rate=5/s"),
                "\"rate\" is an option of the rules of tbf; those of epoch_groups have weight=, "
                "rank= and by="));
    CHECK(tells(group_mistake("a job=x wieght=5"), "did you mean weight?"));
    CHECK(tells(group_mistake("default job=x"), "write default * by=job"));
    CHECK(tells(group_mistake("a job=x by=size"), "column 12"));
}

TEST_CASE("lrs group rules: without one, each job is a group; a zone is one by its addresses",
          "[lrs]") {
    const auto none = GroupRules::load({}, 1);
    REQUIRE(none.has_value());
    CHECK(group_of(**none, "op=read job=dd.0 user=ann") == "default{job=dd.0}");

    const std::vector<std::string> texts{"west address=10.1.0.0/16 by=none", "east address=10.2.*"};
    const auto zones = GroupRules::load(texts, 1);
    REQUIRE(zones.has_value());
    CHECK(group_of(**zones, "op=read job=a address=10.1.2.3") == "west");
    CHECK(group_of(**zones, "op=read job=b address=10.1.9.9") == "west");
    CHECK(group_of(**zones, "op=read job=b address=10.2.0.1") == "east{address=10.2.0.1}");
    CHECK(group_of(**zones, "op=read job=b address=10.3.0.1") == "default{job=b}");
}

TEST_CASE("lrs group rules: they are changed by hand, as a whole or not at all", "[lrs]") {
    EpochGroupsNode node(1, 100);
    PolicySettings settings;
    using Verb = RuleEdit::Verb;
    const auto edit = [&](Verb verb, std::string_view text,
                          std::optional<std::uint64_t> only_at = {}) {
        const auto wrong =
            node.edit(settings, {.verb = verb, .text = text, .only_at = only_at}, Instant{});
        return wrong ? to_string(*wrong) : std::string();
    };
    const auto texts = [&] {
        const auto rules = node.rules(settings, Instant{});
        std::vector<std::string> all;
        for (std::size_t i = 0; i < rules->count(); ++i) all.push_back(rules->text(i));
        return all;
    };
    using Texts = std::vector<std::string>;

    CHECK(texts() == Texts{"default * by=job"});
    const std::uint64_t version = node.rules(settings, Instant{})->version();
    CHECK(version >= 100);
    CHECK(edit(Verb::kAdd, "b  job=b  weight=2").empty());
    CHECK(edit(Verb::kAdd, "a user=* rank=5").empty());
    CHECK(edit(Verb::kChange, "b weight=3").empty());
    CHECK(texts() == Texts{"a user=* rank=5", "b job=b weight=3", "default * by=job"});
    CHECK(node.rules(settings, Instant{})->version() == version + 3);

    const auto before = node.rules(settings, Instant{});
    CHECK(tells(edit(Verb::kAdd, "b job=c"), "already"));
    CHECK(tells(edit(Verb::kAdd, "c job=c", version), "version"));
    CHECK(tells(edit(Verb::kDel, "default"), "cannot be removed"));
    CHECK(tells(edit(Verb::kLoad, "c job=c\nd weight=0"), "line 2"));
    CHECK(node.rules(settings, Instant{}) == before);

    CHECK(edit(Verb::kDel, "a").empty());
    CHECK(edit(Verb::kChange, "default by=none").empty());
    CHECK(texts() == Texts{"b job=b weight=3", "default *"});
    CHECK(edit(Verb::kLoad, "# none\n").empty());
    CHECK(texts() == Texts{"default * by=job"});
}

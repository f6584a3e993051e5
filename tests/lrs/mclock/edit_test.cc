// Goal: mclock's rules are changed by hand as a whole or not at all, in the grammar they are
// written in.

#include "lrs/mclock/edit.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/random.h"
#include "lrs/policies.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

using Texts = std::vector<std::string>;
using Verb = RuleEdit::Verb;

// The rules in force, and what was said of the last change that was refused.
struct Edited {
    explicit Edited(Texts rules, std::uint64_t version = 0) : node(1, version) {
        settings.capacity = 1000;
        settings.rules = std::move(rules);
    }

    bool edit(Verb verb, std::string_view text, std::optional<std::uint64_t> only_at = {}) {
        const auto next =
            edit_mclock(settings, rules(), {.verb = verb, .text = text, .only_at = only_at});
        said = next ? std::string() : to_string(next.error());
        if (next) settings = *next;
        return next.has_value();
    }
    MclockRules::Ptr rules() { return node.share(settings).rules; }
    Texts texts() {
        Texts all;
        for (const MclockRule& rule : rules()->rules()) all.push_back(rule.text());
        return all;
    }
    bool has_said(std::string_view words) const { return said.find(words) != std::string::npos; }

    MclockNode node;
    MclockSettings settings;
    std::string said;
};

}  // namespace

TEST_CASE("lrs mclock edit: rules come, change and go, in the order of their ranks", "[lrs]") {
    Edited edited({"b job=b weight=2"});
    const std::uint64_t version = edited.rules()->version();
    REQUIRE(edited.edit(Verb::kAdd, "a   job={a a2}   reservation=100/s limit=none"));
    REQUIRE(edited.edit(Verb::kAdd, "c job=c soft_limit=10/s rank=5"));
    CHECK(edited.texts() == Texts{"c job=c soft_limit=10/s rank=5", "b job=b weight=2",
                                  "a job={a a2} reservation=100/s", "default *"});
    CHECK(edited.rules()->version() == version + 2);
    CHECK(edited.settings.rules.size() == 3);

    REQUIRE(edited.edit(Verb::kChange, "a weight=7 limit=500/s"));
    REQUIRE(edited.edit(Verb::kChange, "c limit=20/s rank=3000"));
    REQUIRE(edited.edit(Verb::kChange, "default weight=3"));
    CHECK(edited.texts() == Texts{"b job=b weight=2",
                                  "a job={a a2} reservation=100/s weight=7 limit=500/s",
                                  "c job=c limit=20/s rank=3000", "default * weight=3"});
    REQUIRE(edited.edit(Verb::kChange, "a job=x reservation=none limit=none"));
    REQUIRE(edited.edit(Verb::kDel, "c"));
    CHECK(edited.texts() == Texts{"b job=b weight=2", "a job=x weight=7", "default * weight=3"});

    REQUIRE(edited.edit(Verb::kLoad, "# All of them.\n\n  d job=d\n  e * weight=5"));
    CHECK(edited.texts() == Texts{"d job=d", "e * weight=5", "default *"});
}

TEST_CASE("lrs mclock edit: a refused edit changes nothing, and has a reason", "[lrs]") {
    Edited edited({"a job={a b} reservation=400/s limit=500/s", "b job=c"});
    const auto before = edited.rules();
    const auto refuses = [&](Verb verb, std::string_view text, std::string_view words) {
        CAPTURE(std::string(text));
        CHECK_FALSE(edited.edit(verb, text));
        CAPTURE(edited.said);
        CHECK(edited.has_said(words));
        CHECK(edited.rules() == before);
    };
    refuses(Verb::kAdd, "b job=x", "there is a rule \"b\" already");
    refuses(Verb::kAdd, "c job=c weight=0", "column 16");
    refuses(Verb::kAdd, "c job=c reservation=201/s", "(a 2 x 400/s, c 201/s)");
    refuses(Verb::kAdd, "c job=* reservation=1/s",
            "column 9: the number of classes of the rule is unknown");
    refuses(Verb::kChange, "c weight=1", "there is no rule \"c\"");
    refuses(Verb::kChange, "a weight=1 weight=2", "column 12");
    refuses(Verb::kChange, "a limit=399/s", "column 3: the limit of 399/s is below");
    refuses(Verb::kChange, "a reservation=501/s", "column 3: the limit of 500/s is below");
    refuses(Verb::kChange, "a reservation=501/s limit=none weight=2", "2 x 501/s");
    refuses(Verb::kChange, "a job=*", "column 1: the number of classes of the rule is unknown");
    refuses(Verb::kChange, "default job=x", "the rule default");
    refuses(Verb::kDel, "c", "there is no rule \"c\"");
    refuses(Verb::kDel, "default", "cannot be removed");
    refuses(Verb::kLoad, "x job=x\n#\nx job=y\n", "line 3, column 1");
    refuses(Verb::kLoad, "x job=x\n\ny job=y rate=1/s\n", "line 3, column 9");
    std::string many;
    for (int i = 0; i < 2000; ++i) many += "r" + std::to_string(i) + " job=a\n";
    refuses(Verb::kLoad, many, "more than 1024 rules");
    CHECK_FALSE(edited.edit(Verb::kDel, "b", before->version() + 1));
    CHECK(edited.has_said("the rules have version"));
    CHECK(edited.edit(Verb::kDel, "b", before->version()));
}

TEST_CASE("lrs mclock edit: rules that stay keep their meters, and the same rules their version",
          "[lrs]") {
    Edited edited({"a job=a reservation=10/s limit=20/s", "b job=b limit=5/s"});
    const auto before = edited.rules();
    REQUIRE(edited.edit(Verb::kChange, "b limit=6/s"));
    const auto after = edited.rules();
    CHECK(after->rules()[0].reserved == before->rules()[0].reserved);
    CHECK(after->rules()[1].own_bucket != before->rules()[1].own_bucket);
    CHECK(edited.rules()->version() == after->version());
    edited.settings.capacity = 2000;
    CHECK(edited.rules() == after);
}

TEST_CASE("lrs rules: versions go on from the one that was said", "[lrs]") {
    PolicyNode node(1, 5000);
    const TbfSettings tbf{.rules = {"a job=a rate=1/s"}};
    const std::uint64_t first = node.tbf.revision({}, Instant{})->version();
    CHECK(first > 5000);
    CHECK(node.tbf.revision(tbf, Instant{})->version() == first + 1);
    const std::uint64_t second = node.mclock.share({}).rules->version();
    CHECK(second > 5000);
    CHECK(node.mclock.share({.rules = {"a job=a"}}).rules->version() == second + 1);
}

TEST_CASE("lrs mclock edit: any row of changes leaves rules that read back to the same", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        Edited edited({});
        for (int step = 0; step < 100; ++step) {
            const std::string name = "r" + std::to_string(random.below(6));
            switch (random.below(4)) {
                case 0: edited.edit(Verb::kAdd, name + " job={x y} reservation=50/s"); break;
                case 1: edited.edit(Verb::kDel, name); break;
                case 2:
                    edited.edit(Verb::kChange, name + " rank=" + std::to_string(random.below(4)));
                    break;
                default:
                    edited.edit(Verb::kChange,
                                name + " reservation=" + std::to_string(1 + random.below(200)) +
                                    "/s limit=" + (random.below(2) == 0 ? "none" : "150/s"));
            }
            const auto& rules = edited.rules()->rules();
            REQUIRE(std::ranges::is_sorted(rules.begin(), rules.end() - 1, {}, &MclockRule::rank));
            REQUIRE(rules.back().name == kDefaultRule);
            REQUIRE(edited.rules()->reserved_per_second() <= 1000);
            const Texts texts = edited.texts();
            const auto again = MclockRules::load(texts);
            REQUIRE(again.has_value());
            REQUIRE((*again)->rules().size() == texts.size());
            for (std::size_t i = 0; i < texts.size(); ++i) {
                REQUIRE((*again)->rules()[i].text() == texts[i]);
            }
        }
    }
}

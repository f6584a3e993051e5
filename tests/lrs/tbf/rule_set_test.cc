// Goal: rules are changed as a whole or not at all, and in the order that was promised.

#include "lrs/tbf/rule_set.h"

#include <algorithm>
#include <utility>

#include "core/random.h"
#include "lrs/classes/described_request.h"
#include "tests/catch.h"
#include "tests/lrs/tbf/rule_edits.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr RuleEdits::Edit kNow{.now = Instant{1s}};

std::vector<std::string> names_of(const RuleSet& rules) {
    std::vector<std::string> names;
    for (const Rule& rule : rules.rules()) names.push_back(rule.name);
    return names;
}
using Names = std::vector<std::string>;

std::string rule_for(const RuleSet& rules, std::string_view request) {
    const auto described = DescribedRequest::parse(request);
    REQUIRE(described.has_value());
    return rules.rule_for((*described)->attributes()).name;
}

}  // namespace

TEST_CASE("lrs rules: without rules there is the default rule, without limits", "[lrs]") {
    const RuleEdits book;
    CHECK(names_of(*book.current()) == Names{"default"});
    CHECK(book.current()->rules().back().limits.is_unlimited());
    CHECK(file_of(*book.current()) == "default * rate=unlimited\n");
}

TEST_CASE("lrs rules: the lowest rank is first, then who was there first, and default is last",
          "[lrs]") {
    RuleEdits book;
    REQUIRE(book.add("b job=b rate=1/s", kNow));
    REQUIRE(book.add("c job=c rate=1/s rank=2000", kNow));
    REQUIRE(book.add("a job=a rate=1/s rank=5", kNow));
    REQUIRE(book.add("d job=d rate=1/s", kNow));
    CHECK(names_of(*book.current()) == Names{"a", "b", "d", "c", "default"});

    REQUIRE(book.change("a rank=3000", kNow));
    CHECK(names_of(*book.current()) == Names{"b", "d", "c", "a", "default"});
    REQUIRE(book.change("b rate=7/s", kNow));
    CHECK(names_of(*book.current()) == Names{"b", "d", "c", "a", "default"});
    REQUIRE(book.del("b", kNow));
    CHECK(names_of(*book.current()) == Names{"d", "c", "a", "default"});
}

TEST_CASE("lrs rules: any row of changes keeps each rule once, in the order of ranks", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        RuleEdits book;
        // The names, each behind those of its rank, as the plainest list has them.
        std::vector<std::pair<std::uint64_t, std::string>> plain;
        const auto place = [&plain](std::uint64_t rank, const std::string& name) {
            const auto later =
                std::ranges::find_if(plain, [rank](const auto& each) { return each.first > rank; });
            plain.insert(later, {rank, name});
        };
        for (int step = 0; step < 200; ++step) {
            const std::string name = "r" + std::to_string(random.below(8));
            const std::uint64_t rank = random.below(4);
            const auto known =
                std::ranges::find(plain, name, [](const auto& each) { return each.second; });
            if (known == plain.end()) {
                REQUIRE(book.add(name + " job=a rate=1/s rank=" + std::to_string(rank), kNow));
                place(rank, name);
            } else if (random.below(4) == 0) {
                REQUIRE(book.del(name, kNow));
                plain.erase(known);
            } else {
                REQUIRE(book.change(name + " rank=" + std::to_string(rank), kNow));
                if (known->first == rank) continue;
                plain.erase(known);
                place(rank, name);
            }
            Names names;
            for (const auto& each : plain) names.push_back(each.second);
            names.emplace_back("default");
            REQUIRE(names_of(*book.current()) == names);
        }
    }
}

TEST_CASE("lrs rules: the first rule that is for a request decides", "[lrs]") {
    RuleEdits book;
    REQUIRE(book.add("reads op=read rate=1/s", kNow));
    REQUIRE(book.add("dd job=dd* rate=1/s", kNow));
    CHECK(rule_for(*book.current(), "op=read job=dd.0") == "reads");
    CHECK(rule_for(*book.current(), "op=write job=dd.0") == "dd");
    CHECK(rule_for(*book.current(), "op=write job=cp") == "default");
    REQUIRE(book.change("dd rank=1", kNow));
    CHECK(rule_for(*book.current(), "op=read job=dd.0") == "dd");
}

TEST_CASE("lrs rules: a refused edit changes nothing", "[lrs]") {
    RuleEdits book;
    REQUIRE(book.add("a job=a rate=1/s", kNow));
    const RuleSetPtr before = book.current();
    const auto check_refused = [&](const RuleRevisions::Edited& edited, std::string_view words) {
        REQUIRE_FALSE(edited.has_value());
        CAPTURE(to_string(edited.error()));
        CHECK(to_string(edited.error()).find(words) != std::string::npos);
        CHECK(book.current() == before);
    };

    check_refused(book.add("a job=b rate=1/s", kNow), "already");
    check_refused(book.add("default * rate=1/s", kNow), "already");
    check_refused(book.add("b job=b", kNow), "no rate");
    check_refused(book.change("c rate=1/s", kNow), "no rule \"c\"");
    check_refused(book.change("defualt rate=1/s", kNow), "did you mean default");
    check_refused(book.change("a rate=-1/s", kNow), "negative");
    check_refused(book.change("default job=a", kNow), "no other rule is for");
    check_refused(book.del("b", kNow), "no rule \"b\"");
    check_refused(book.del("default", kNow), "cannot be removed");
    const std::vector<std::string> doubles{"x job=a rate=1/s", "y job=b rate=1/s",
                                           "x job=c rate=1/s"};
    check_refused(book.load(doubles, kNow.now), "line 3, column 1: there is a rule \"x\" already");
    check_refused(book.load_text("# rules\n\n  x job=a rate=1/s\ny job={b rate=1/s\n", kNow),
                  "line 4, column 14");
    const RuleEdits::Edit late{.now = Instant{1s}, .only_at = before->version() - 1};
    check_refused(book.add("b job=b rate=1/s", late), "have version");
    check_refused(book.load_text("", late), "have version");
    check_refused(book.del("a", late), "have version");
    check_refused(book.change("a rate=2/s", late), "have version");
}

TEST_CASE("lrs rules: a change at the version that was seen is made, and has the next", "[lrs]") {
    RuleEdits book;
    const std::uint64_t seen = book.current()->version();
    const auto changed = book.add("a job=a rate=1/s", {.now = Instant{1s}, .only_at = seen});
    REQUIRE(changed.has_value());
    CHECK((*changed)->version() == seen + 1);
    CHECK(book.current() == *changed);
}

TEST_CASE("lrs rules: there is a limit to how many there are", "[lrs]") {
    RuleEdits book;
    std::vector<std::string> rules;
    for (std::size_t i = 0; i < kRulesMax; ++i) {
        rules.push_back("r" + std::to_string(i) + " job=a rate=1/s");
    }
    REQUIRE(book.load(rules, kNow.now));
    CHECK_FALSE(book.add("another job=a rate=1/s", kNow).has_value());
    rules.emplace_back("another job=a rate=1/s");
    CHECK_FALSE(book.load(rules, kNow.now).has_value());
    CHECK_FALSE(book.load_text(std::string(std::size_t{8} << 20, '\n'), kNow).has_value());
}

TEST_CASE("lrs rules: unchanged rules keep their ids, changed limits get a new bucket", "[lrs]") {
    RuleEdits book;
    const std::vector<std::string> rules{"a job=a rate=1/s", "b job=b rate=1/s",
                                         "c job=c rate=1/s"};
    REQUIRE(book.load(rules, kNow.now));
    const RuleSetPtr before = book.current();
    REQUIRE(book.load_text("c job=c rate=1/s\na job=a rate=2/s\nb job=x rate=1/s\n", kNow));
    const RuleSetPtr after = book.current();

    CHECK(after->find("c")->id == before->find("c")->id);
    CHECK(after->find("c")->limits_id == before->find("c")->limits_id);
    CHECK(after->find("c")->own_bucket == before->find("c")->own_bucket);
    CHECK(after->find("a")->id == before->find("a")->id);
    CHECK(after->find("a")->limits_id != before->find("a")->limits_id);
    CHECK(after->find("a")->own_bucket != before->find("a")->own_bucket);
    CHECK(after->find("b")->id != before->find("b")->id);
    CHECK(after->find("default")->id == before->find("default")->id);
}

TEST_CASE("lrs rules: a file of rules is what a list of them prints", "[lrs]") {
    RuleEdits book;
    REQUIRE(book.load_text("default * rate=100/s by=client\nx op={read write} rate=5MB/s rank=7\n",
                           kNow));
    const std::string text = file_of(*book.current());
    CHECK(text == "x op={read write} rate=5MB/s rank=7\ndefault * rate=100/s by=client\n");
    RuleEdits other;
    REQUIRE(other.load_text(text, kNow));
    CHECK(file_of(*other.current()) == text);
}

TEST_CASE("lrs rules: all mistakes of a file are reported at once", "[lrs]") {
    RuleEdits book;
    const auto edited = book.load_text(
        "a job=a rate=1/s\n"
        "b jbo=b rate=1/s\n"
        "# a comment\n"
        "a job=c rate=1/s\n"
        "d job=d\n",
        kNow);
    REQUIRE_FALSE(edited.has_value());
    REQUIRE(edited.error().size() == 3);
    CHECK(to_string(edited.error()[0]).starts_with("line 2, column 3: there is no key \"jbo\""));
    CHECK(to_string(edited.error()[1]).starts_with("line 4, column 1: there is a rule \"a\""));
    CHECK(to_string(edited.error()[2]).starts_with("line 5, column 8: the rule has no rate"));

    std::string many;
    for (int i = 0; i < 1000; ++i) many += "x\n";
    const auto refused = book.load_text(many, kNow);
    REQUIRE_FALSE(refused.has_value());
    REQUIRE(refused.error().size() == 101);
    CHECK(to_string(refused.error().back()) ==
          "line 101, column 1: from here on there are 900 more mistakes; mend the others first");
}

TEST_CASE("lrs rules: a file may have tabs, the ends of lines of DOS and a mark in front",
          "[lrs]") {
    RuleEdits book;
    const auto edited = book.load_text(
        "\xef\xbb\xbf# rules\r\n"
        "\r\n"
        "\t# more\r\n"
        "a\tjob=\"a b\"\trate=1/s\t\r\n"
        "b\tjob={x\ty}\trate=2/s",
        kNow);
    REQUIRE(edited.has_value());
    CHECK(file_of(**edited) ==
          "a job=\"a b\" rate=1/s\nb job={x y} rate=2/s\ndefault * rate=unlimited\n");

    const auto in_quotes = book.load_text("a job=\"a\tb\" rate=1/s", kNow);
    REQUIRE_FALSE(in_quotes.has_value());
    CHECK(to_string(in_quotes.error()) ==
          "line 1, column 9: there is a tab in quotes; write a blank");
    CHECK_FALSE(book.load_text("a job=a\rrate=1/s", kNow).has_value());
}

// Goal: the rules of mclock as docs/formats/rules.md has them, and what is said about others.

#include <limits>
#include <string>
#include <vector>

#include "lrs/classes/described_request.h"
#include "lrs/mclock/rule_set.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

MclockRule mclock_rule(std::string_view text) {
    CAPTURE(text);
    auto rule = parse_mclock_rule(text);
    if (!rule) INFO(to_string(rule.error()));
    REQUIRE(rule.has_value());
    return *std::move(rule);
}

std::string mclock_mistake(std::string_view text) {
    const auto rule = parse_mclock_rule(text);
    return rule ? "none" : to_string(rule.error());
}

bool tells(const std::string& said, std::string_view words) {
    return said.find(words) != std::string::npos;
}

std::size_t classes_of(std::string_view expression) {
    return mclock_rule("r " + std::string(expression) + " reservation=1/s").class_count;
}

}  // namespace

TEST_CASE("lrs mclock rule: all that can be said", "[lrs]") {
    const MclockRule rule = mclock_rule(
        "gold user={ann bob}&size<64k reservation=500/s weight=4 soft_limit=2000/s rank=3 by=none");
    CHECK(rule.name == "gold");
    CHECK(rule.shares == Shares{.reservation = 500, .weight = 4, .limit = 2000, .is_soft = true});
    CHECK(rule.rank == 3);
    CHECK(rule.classes_by.is_empty());
    CHECK(rule.class_count == 1);
}

TEST_CASE("lrs mclock rule: the default is a weight of one", "[lrs]") {
    CHECK(mclock_rule("jobs job=*").shares == Shares{});
    CHECK(mclock_rule("default *").shares == Shares{});
}

TEST_CASE("lrs mclock rule: it prints and reads back to the same", "[lrs]") {
    for (const char* text :
         {"a job=*", "a job=* weight=7", "a user=x reservation=5/s weight=3 limit=6/s",
          "a user={x y}&op!=read soft_limit=10/s by={job op} rank=2", "default * limit=100/s"}) {
        const MclockRule rule = mclock_rule(text);
        CHECK(rule.text() == text);
        const MclockRule again = mclock_rule(rule.text());
        CHECK(again.shares == rule.shares);
        CHECK(again.has_same_classes_as(rule));
    }
}

TEST_CASE("lrs mclock rule: mistakes have their column", "[lrs]") {
    CHECK(tells(mclock_mistake("a job=x weight=0"), "column 16"));
    CHECK(tells(mclock_mistake("a job=x weight=1001"), "column 16"));
    CHECK(
        tells(mclock_mistake("a job=x weight=1 weight=2"), "column 18: \"weight\" is there twice"));
    CHECK(tells(mclock_mistake("a job=x limit=0/s"), "column 15"));
    CHECK(tells(mclock_mistake("a job=x limit=100000001/s"), "is out of range"));
    CHECK(tells(mclock_mistake("a job=x limit=5MB/s"), "is a rate in bytes"));
    CHECK(tells(mclock_mistake("a job=x limit=5/s soft_limit=6/s"), "two limits"));
    CHECK(tells(mclock_mistake("a job=x rate=5/s"),
                "column 9: \"rate\" is an option of the rules of tbf; those of mclock have "
                "reservation=, weight=, limit=, soft_limit=, rank= and by="));
    CHECK(tells(mclock_mistake("a job=x and op=read"), "column 9: \"and\" stands behind a test"));
    for (const char* rate : {"-1/s", "1e30", "1e30/s", "200", "0/s"}) {
        const std::string said = mclock_mistake("a job=x limit=" + std::string(rate));
        CAPTURE(said);
        CHECK(tells(said, "column 15"));
        CHECK(tells(said, "write 1/s to 100000000/s, or none"));
    }
    CHECK(tells(mclock_mistake("a job=x wieght=5"), "did you mean weight?"));
    CHECK(tells(mclock_mistake("a job=x limit"), "'='"));
    CHECK(tells(mclock_mistake("a jbo=x"), "did you mean job?"));
    CHECK(tells(mclock_mistake("a job=x \x01"), "an invisible control character"));
    CHECK(tells(mclock_mistake("default job=x"), "write default * weight=1"));
}

TEST_CASE("lrs mclock rule: a reservation above the limit is refused, with both", "[lrs]") {
    const std::string said = mclock_mistake("a job=x reservation=300/s limit=200/s");
    CHECK(tells(said, "column 27: the limit of 200/s is below the reservation of 300/s"));
    CHECK(tells(mclock_mistake("a job=x reservation=3/s soft_limit=2/s"), "is below"));
    CHECK(mclock_mistake("a job=x reservation=3/s limit=3/s") == "none");
}

TEST_CASE("lrs mclock rule: the number of its classes follows from its conditions", "[lrs]") {
    CHECK(classes_of("*") == 1);
    CHECK(classes_of("job=* by=none") == 1);
    CHECK(classes_of("job={a b c}") == 3);
    CHECK(classes_of("job={a b c}&user={x y}") == 6);
    CHECK(classes_of("job={a b c}&user=x*&size<4k by=job") == 3);
    CHECK(classes_of("job={a b},user=x&job=c by=job") == 3);
    CHECK(classes_of("job={a b}&job={b c d}") == 2);
    CHECK(classes_of("address={10.0.0.1 10.0.0.2} by=address") == 2);
    CHECK(classes_of("op=read") == 1);
    CHECK(classes_of("op={upload_* read} by=op") > 2);
    CHECK(classes_of("job=a by={job op}") > 10);
    CHECK(classes_of("op=read&op=write") == 1);
    for (const char* expression :
         {"job=*", "job!=a", "job=1..9", "* by=client", "address=10.0.0.0/8", "job=a,user=x",
          "object=*", "job=a by={job user}"}) {
        CAPTURE(expression);
        CHECK(tells(mclock_mistake("r " + std::string(expression) + " reservation=1/s"),
                    "the number of classes of the rule is unknown"));
    }
    std::string many = "{";
    for (int i = 0; i < 100; ++i) many += std::to_string(i) + ' ';
    many += '}';
    CHECK(tells(mclock_mistake("r job=" + many + "&user=" + many + " reservation=1/s"),
                "10000 classes that reserve something"));
}

TEST_CASE("lrs mclock rules: the default is last, others are in the order of their ranks",
          "[lrs]") {
    const auto loaded = MclockRules::load(
        std::vector<std::string>{"a job=a", "default * weight=9", "b job=b rank=5", "c job=c"});
    REQUIRE(loaded.has_value());
    std::vector<std::string> names;
    for (const MclockRule& rule : (*loaded)->rules()) names.push_back(rule.name);
    CHECK(names == std::vector<std::string>{"b", "a", "c", "default"});
    CHECK((*loaded)->rules().back().shares.weight == 9);
    const auto other = DescribedRequest::parse("job=x");
    CHECK((*loaded)->rule_for((*other)->attributes()).name == "default");
}

TEST_CASE("lrs mclock rules: reservations are summed up over classes", "[lrs]") {
    const auto loaded = MclockRules::load(std::vector<std::string>{
        "a job={x y} reservation=5/s", "b user=z reservation=100/s", "c job=*"});
    REQUIRE(loaded.has_value());
    CHECK((*loaded)->reserved_per_second() == 110);
    CHECK((*loaded)->reservations_text() == "a 2 x 5/s, b 100/s");
}

TEST_CASE("lrs mclock rules: two of a name, and too many, are refused with their place", "[lrs]") {
    const auto twice = MclockRules::load(std::vector<std::string>{"a job=a", "a job=b"});
    REQUIRE_FALSE(twice.has_value());
    CHECK(twice.error().front().line == 2);
    std::vector<std::string> many;
    for (int i = 0; i < 1025; ++i) many.push_back("r" + std::to_string(i) + " job=a");
    const auto too_many = MclockRules::load(many);
    REQUIRE_FALSE(too_many.has_value());
    CHECK(tells(too_many.error().front().wrong, "1024"));
}

TEST_CASE("lrs mclock cost: a request is one, and its data as the unit says", "[lrs]") {
    CHECK(CostModel().cost_of(0) == kCostOfOne);
    CHECK(CostModel().cost_of(64 * 1024) == 2 * kCostOfOne);
    CHECK(CostModel().cost_of(32 * 1024) == kCostOfOne + kCostOfOne / 2);
    CHECK(CostModel(4096).cost_of(64 * 1024) == 17 * kCostOfOne);
    CHECK(CostModel(std::nullopt).cost_of(std::uint64_t{1} << 40) == kCostOfOne);
    CHECK(CostModel().cost_of(1) > kCostOfOne);
    CHECK(CostModel(512).cost_of(std::numeric_limits<std::uint64_t>::max()) == kCostMax);
    CHECK(CostPace(1).time_of(kCostOfOne) == kTicksPerSecond);
    CHECK(CostPace(1000).time_of(5 * kCostOfOne) == kTicksPerSecond / 200);
    CHECK(CostPace(CostPace::kPerSecondMax).time_of(kCostOfOne) == kTicksPerSecond / 100'000'000);
}

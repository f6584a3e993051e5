// Goal: the grammar of docs/formats/rules.md, and what is said about text that is not in it.
// Method: rules and requests by example; each mistake with its column; texts meant to be slow.

#include "lrs/tbf/rule_parser.h"

#include <chrono>
#include <string>

#include "core/random.h"
#include "lrs/classes/described_request.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

Rule rule_of(std::string_view text) {
    CAPTURE(text);
    auto rule = parse_rule(text);
    if (!rule) INFO(to_string(rule.error()));
    REQUIRE(rule.has_value());
    return *std::move(rule);
}

// Of a rule with this expression.
bool is_for(std::string_view expression, std::string_view request) {
    const Rule rule = rule_of("r " + std::string(expression) + " rate=1/s");
    const auto described = DescribedRequest::parse(request);
    CAPTURE(request);
    if (!described) INFO(to_string(described.error()));
    REQUIRE(described.has_value());
    return rule.matches((*described)->attributes());
}

std::string class_of(std::string_view rule, std::string_view request) {
    const auto described = DescribedRequest::parse(request);
    REQUIRE(described.has_value());
    return rule_of(rule).class_name((*described)->attributes());
}

void check_mistake(std::string_view text, std::size_t column, std::string_view words) {
    CAPTURE(text);
    const auto rule = parse_rule(text);
    REQUIRE_FALSE(rule.has_value());
    const std::string said = to_string(rule.error());
    CAPTURE(said);
    CHECK(rule.error().column == column);
    CHECK(said.find(words) != std::string::npos);
    CHECK_FALSE(rule.error().wrong.empty());
    CHECK_FALSE(rule.error().right.empty());
}

// What is looked for is a blow-up: a rule of the greatest length that is right may take some
// milliseconds on a machine that is shared. Sanitizers, and no optimisation, may take many.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr auto kRefusedWithin = std::chrono::milliseconds(1);
constexpr auto kReadWithin = std::chrono::milliseconds(10);
#else
constexpr auto kRefusedWithin = std::chrono::milliseconds(200);
constexpr auto kReadWithin = kRefusedWithin;
#endif

}  // namespace

TEST_CASE("lrs rule: a rule has a name, conditions and limits", "[lrs]") {
    const Rule rule = rule_of("small op=read&size<64k rate=20000/s burst=64");
    CHECK(rule.name == "small");
    CHECK(rule.limits.operations == Limit{.per_second = 20'000, .burst = 64});
    CHECK_FALSE(rule.limits.bytes.has_value());
    CHECK(rule.rank == Rule::kRankDefault);
    CHECK(rule.text() == "small op=read&size<64KiB rate=20000/s burst=64");
}

TEST_CASE("lrs rule: and binds before or", "[lrs]") {
    constexpr std::string_view kExpression = "job=a&op=read,user=root";
    CHECK(is_for(kExpression, "job=a op=read"));
    CHECK(is_for(kExpression, "job=b user=root"));
    CHECK_FALSE(is_for(kExpression, "job=a op=write"));
    CHECK_FALSE(is_for(kExpression, "user=ann op=read"));
    CHECK(is_for("*", "job=a"));
    CHECK(is_for("job=a & * , user=root", "job=a"));
}

TEST_CASE("lrs rule: every key is looked at", "[lrs]") {
    constexpr std::string_view kRequest =
        "address=10.1.2.3 client=000102030405060708090a0b0c0d0e0f group=staff job=dd.0 network=tcp "
        "object=00010000000000070000000000000009 op=write pool=fast principal=ann size=4k user=bob";
    for (const std::string_view test :
         {"address=10.1.2.3", "client=000102030405060708090a0b0c0d0e0f", "client=0001*",
          "group=staff", "job=dd.0", "network=tcp", "object=00010000000000070000000000000009",
          "object=0001*", "op=write", "pool=fast", "principal=ann", "size=4096", "user=bob"}) {
        CAPTURE(test);
        CHECK(is_for(test, kRequest));
        CHECK_FALSE(is_for(test, "job=other op=sync size=1"));
        std::string opposite(test);
        opposite.insert(opposite.find('='), "!");
        CHECK_FALSE(is_for(opposite, kRequest));
        CHECK(is_for(opposite, "job=other op=sync size=1"));
    }
}

TEST_CASE("lrs rule: any of a principal's groups counts, and all of one group are a class",
          "[lrs]") {
    constexpr std::string_view kBoth = "group={users staff}";
    CHECK(is_for("group=users", kBoth));
    CHECK(is_for("group=staff", kBoth));
    CHECK(is_for("group=users&group=staff", kBoth));
    CHECK_FALSE(is_for("group=dev", kBoth));
    CHECK_FALSE(is_for("group!=staff", kBoth));
    CHECK(is_for("group!=dev", kBoth));
    CHECK(is_for("group=\"\"", "job=a"));
    CHECK_FALSE(is_for("group=\"\"", kBoth));

    CHECK(class_of("r group=staff rate=1/s", kBoth) == "r{group=staff}");
    CHECK(class_of("r group=staff rate=1/s", "group=staff") == "r{group=staff}");
    CHECK(class_of("r group={staff users} rate=1/s", kBoth) == "r{group=users}");
    CHECK(class_of("r group=users&group=staff rate=1/s", kBoth) == "r{group=users}");
    CHECK(class_of("r * rate=1/s by=group", kBoth) == "r{group=users}");
    CHECK(class_of("r group!=users,job=a rate=1/s by=group", "job=a group={users staff}") ==
          "r{group=users}");
}

TEST_CASE("lrs rule: lists, ranges and wildcards", "[lrs]") {
    CHECK(is_for("job={a b c}", "job=c"));
    CHECK_FALSE(is_for("job={a b c}", "job=d"));
    CHECK_FALSE(is_for("job!={a b c}", "job=c"));
    CHECK(is_for("job!={a b c}", "job=d"));
    CHECK(is_for("user=500..599", "user=512"));
    CHECK_FALSE(is_for("user=500..599", "user=600"));
    CHECK_FALSE(is_for("user=500..599", "user=512x"));
    CHECK(is_for("user={1 500..599 root}", "user=root"));
    CHECK(is_for("job=sim*", "job=sim.7"));
    CHECK(is_for("job={*.tmp dd*cp}", "job=dd.cp"));
    CHECK_FALSE(is_for("job=*.tmp", "job=tmp"));
    CHECK(is_for("job=\"a b*\"", "job=\"a b*\""));
    CHECK_FALSE(is_for("job=\"a b*\"", "job=\"a bc\""));
    CHECK(is_for("job=\"a b\"*", "job=\"a bc\""));
    CHECK(is_for("job=\"\"", "user=x"));
    CHECK(is_for("op=upload_*", "op=upload_write"));
    CHECK_FALSE(is_for("op=upload_*", "op=write"));
}

TEST_CASE("lrs rule: sizes are compared, listed and ranged", "[lrs]") {
    CHECK(is_for("size<64k", "size=65535"));
    CHECK_FALSE(is_for("size<64k", "size=64k"));
    CHECK(is_for("size<=64k", "size=64k"));
    CHECK_FALSE(is_for("size>64k", "size=64k"));
    CHECK(is_for("size>=64k", "size=64k"));
    CHECK(is_for("size={0 4k..8k}", "size=0"));
    CHECK(is_for("size={0 4k..8k}", "size=8192"));
    CHECK_FALSE(is_for("size={0 4k..8k}", "size=8193"));
    CHECK(is_for("size!=4k..8k", "size=1"));
}

TEST_CASE("lrs rule: addresses are single, ranged or in a network", "[lrs]") {
    CHECK(is_for("address=10.0.0.0/8", "address=10.255.0.1"));
    CHECK_FALSE(is_for("address=10.0.0.0/8", "address=11.0.0.1"));
    CHECK(is_for("address=0.0.0.0/0", "address=11.0.0.1"));
    CHECK_FALSE(is_for("address=0.0.0.0/0", "address=fe80::1"));
    CHECK(is_for("address=10.0.0.9..10.0.0.20", "address=10.0.0.10"));
    CHECK_FALSE(is_for("address=10.0.0.9..10.0.0.20", "address=10.0.0.8"));
    CHECK(is_for("address=10.0.*", "address=10.0.7.7"));
    CHECK(is_for("address=fe80::/16", "address=fe80::1 network=tcp"));
    CHECK(is_for("address=fe80::1", "address=fe80:0::1"));
    CHECK_FALSE(is_for("address=fe80::1", "address=fe80::2"));
    CHECK(is_for("address=10.*.7", "address=10.0.0.7"));
    CHECK(is_for("address=FE80:*", "address=fe80::1"));
    CHECK(is_for("address=*:10.0.0.*", "address=::ffff:10.0.0.1"));
    CHECK(is_for("address!=unknown", "address=10.0.0.7"));
    CHECK(is_for("address=unknown", "address=unknown"));
}

TEST_CASE("lrs rule: a range of addresses is of one family", "[lrs]") {
    for (const std::string_view range :
         {"10.0.0.1..fe80::1", "::1..10.0.0.1", "::..10.0.0.1", "::1..::ffff:10.0.0.1"}) {
        CAPTURE(range);
        check_mistake("r address=" + std::string(range) + " rate=1/s", 11,
                      "or the reverse; write a range of each");
    }
    CHECK(is_for("address=10.0.0.1..::ffff:10.0.0.9", "address=10.0.0.5"));
    for (const std::string_view six : {"address=::/0", "address=::1..ffff::", "address=::/80"}) {
        CAPTURE(six);
        CHECK(is_for(six, "address=::1"));
        CHECK_FALSE(is_for(six, "address=10.0.0.1"));
    }
    CHECK(is_for("address=::/0", "address=fe80::1"));
    CHECK_FALSE(is_for("address=::/80", "address=fe80::1"));
    CHECK(is_for("address=::ffff:10.0.0.0/104", "address=10.0.0.1"));
}

TEST_CASE("lrs rule: a request without an object matches the empty object", "[lrs]") {
    CHECK(is_for("object=\"\"", "op=create"));
    CHECK(is_for("object=\"\"", "object=\"\""));
    CHECK_FALSE(is_for("object=\"\"", "object=00010000000000070000000000000009"));
    CHECK(is_for("object!=\"\"", "object=00010000000000070000000000000009"));
    check_mistake("r client=\"\" rate=1/s", 10, "is not an id");
}

TEST_CASE("lrs rule: a network is one of those there are", "[lrs]") {
    check_mistake("r network=foo rate=1/s", 11, "is not a network; write one of mem, tcp");
    check_mistake("r network=tpc rate=1/s", 11, "did you mean tcp?");
    check_mistake("r network=x* rate=1/s", 11, "is not a network");
    check_mistake("r network=1..3 rate=1/s", 11, "is not a network");
    CHECK(is_for("network=v*", "network=verbs"));
    CHECK(is_for("network=ofi+tcp", "network=ofi+tcp"));
    CHECK_FALSE(is_for("network=tcp", "network=ofi+tcp"));
    const auto described = DescribedRequest::parse("job=a network=foo");
    REQUIRE_FALSE(described.has_value());
    CHECK(described.error().column == 15);
    CHECK(described.error().wrong == "\"foo\" is not a network");
}

TEST_CASE("lrs rule: the burst is at most a day of the rate", "[lrs]") {
    CHECK(parse_rule("r * rate=1/s burst=86400")->limits.operations->burst == 86400);
    CHECK(parse_rule("r * rate=1/s burst=86400")->text() == "r * rate=1/s burst=86400");
    check_mistake("r * rate=1/s burst=86401", 20, "more than a day of the rate");
}

TEST_CASE("lrs rule: no rule has a name that figures use for something else", "[lrs]") {
    check_mistake("all * rate=1/s", 1, "give the rule another name");
    check_mistake("other * rate=1/s", 1, "give the rule another name");
    CHECK(parse_rule("others * rate=1/s").has_value());
}

TEST_CASE("lrs rule: a link-local address has its interface, if somebody asks for it", "[lrs]") {
    for (const std::string_view test :
         {"address=fe80::1%eth0", "address=fe80::*%eth*", "address=fe80::1", "address=fe80::/10"}) {
        CAPTURE(test);
        CHECK(is_for(test, "address=fe80::1%eth0"));
    }
    CHECK_FALSE(is_for("address=fe80::1%eth0", "address=fe80::1%eth1"));
}

TEST_CASE("lrs rule: an address that no client can have is refused", "[lrs]") {
    for (const std::string_view address :
         {"host.example", "client-1", "localhost", "*.example", "*.de", "10.0.*.a", "10.0.0.?",
          "10.0.*/8", "10.0.0", "1::2::3", "fe80::1%", "10.0.0.1%eth0", "\"\""}) {
        CAPTURE(address);
        check_mistake("r address={::1 " + std::string(address) + "} rate=1/s", 16,
                      "is not an address, and host names are not looked up; write 10.0.0.1");
    }
    CHECK_FALSE(DescribedRequest::parse("address=host.example").has_value());
    CHECK_FALSE(DescribedRequest::parse("address=10.0.0.0/8").has_value());
    CHECK(DescribedRequest::parse("address=10.0.0.1/32").has_value());
}

TEST_CASE("lrs rule: a request's peer is taken apart as transports write it", "[lrs]") {
    CHECK(host_of("tcp://10.0.0.1:4711") == "10.0.0.1");
    CHECK(host_of("tcp://[fe80::1]:4711") == "fe80::1");
    CHECK(host_of("client-1:3") == "client-1");
    CHECK(host_of("") == "");
    CHECK(host_of("[::1") == "[::1");
    CHECK(scheme_of("verbs://10.0.0.1:4711") == "verbs");
    CHECK(scheme_of("client-1:3") == "");
}

TEST_CASE("lrs rule: classes follow the conditions, or by=", "[lrs]") {
    constexpr std::string_view kRequest = "op=read job=dd.0 user=ann size=4k";
    CHECK(class_of("r op=read&size<64k rate=1/s", kRequest) == "r{op=read}");
    CHECK(class_of("r job=*&user=ann rate=1/s", kRequest) == "r{job=dd.0 user=ann}");
    CHECK(class_of("r job=* rate=1/s by=none", kRequest) == "r");
    CHECK(class_of("r * rate=1/s by={user op}", kRequest) == "r{op=read user=ann}");
    CHECK(class_of("r * rate=1/s by=job", "job=\"a\\\"b\"") == "r{job=a\"b}");
    CHECK(class_of("r * rate=1/s", kRequest) == "r");
}

TEST_CASE("lrs rule: a long name and all keys together make a class", "[lrs]") {
    const std::string name(64, 'n');
    const std::string keys = "address client group job network object op pool principal user";
    const std::string request =
        "address=10.1.2.3 client=000102030405060708090a0b0c0d0e0f group=staff job=dd.0 network=tcp "
        "object=00010000000000070000000000000009 op=write pool=fast principal=ann user=bob";
    CHECK(class_of(name + " * rate=1/s by={" + keys + "}", request) == name + "{" + request + "}");
}

TEST_CASE("lrs rule: rates are in operations, bytes, both, none and without limit", "[lrs]") {
    CHECK(rule_of("r * rate=0").limits.is_blocked);
    CHECK(rule_of("r * rate=0/s").limits.is_blocked);
    CHECK(rule_of("r * rate=0B/s").limits.is_blocked);
    CHECK(rule_of("r * rate=block").limits.is_blocked);
    CHECK(rule_of("r * rate=unlimited").limits.is_unlimited());
    const Rule both = rule_of("r * rate={200/s 50MB/s} burst=1MiB");
    CHECK(both.limits.operations == Limit{.per_second = 200, .burst = 2});
    CHECK(both.limits.bytes == Limit{.per_second = 50'000'000, .burst = 1U << 20});
    const Rule bursts = rule_of("r * rate={200/s 50MB/s} burst={7 8B}");
    CHECK(bursts.limits.operations->burst == 7);
    CHECK(bursts.limits.bytes->burst == 8);
}

TEST_CASE("lrs rule: each mistake has its position and a remedy", "[lrs]") {
    check_mistake("", 1, "cannot be the name of a rule");
    check_mistake("\"a\" * rate=1/s", 1, "cannot be the name of a rule");
    check_mistake("a/b * rate=1/s", 1, "cannot be the name of a rule");
    check_mistake("r", 2,
                  "expected a condition, found the end; write key=value, or '*' for everything");
    check_mistake("r rate=5", 3,
                  "expected a condition, found the option \"rate\"; write key=value");
    check_mistake("r * rate=1/s by=", 17, "expected '{', found the end");
    check_mistake("r *", 4, "has no rate");
    check_mistake("r jbo=a rate=1/s", 3, "did you mean job");
    check_mistake("r job rate=1/s", 7, "expected a comparison, found \"rate\"");
    check_mistake("r job= rate=1/s", 12, "expected an option, found '='");
    check_mistake("r job={a b rate=1/s", 16, "stands in a list");
    check_mistake("r job={a b", 7, "has no end");
    check_mistake("r job=a} rate=1/s", 8, "expected an option, found '}'");
    check_mistake("r job={} rate=1/s", 7, "is empty");
    check_mistake("r job=\"a rate=1/s", 7, "has no end");
    check_mistake("r job=\"a\\n\" rate=1/s", 10, "before neither");
    check_mistake("r (job=a) rate=1/s", 3, "parentheses");
    check_mistake("r job!a rate=1/s", 6, "'!' stands alone");
    check_mistake("r job<a rate=1/s", 6, "only the size");
    check_mistake("r size<x rate=1/s", 8, "does not start with a digit");
    check_mistake("r size<0 rate=1/s", 8, "no size fits this bound");
    check_mistake("r size=8k..4k rate=1/s", 8, "ends before it begins");
    check_mistake("r size=4* rate=1/s", 8, "is not a size");
    check_mistake("r op=raed rate=1/s", 6, "did you mean read");
    check_mistake("r op=ping rate=1/s", 6, "control fop");
    check_mistake("r op=x* rate=1/s", 6, "is not a type of fop");
    check_mistake("r client=12 rate=1/s", 10, "is not an id");
    check_mistake("r client=10.0.0.1 rate=1/s", 10, "the key for an address such as 10.0.0.1");
    check_mistake("r client=xyz* rate=1/s", 10, "is not an id");
    check_mistake("r address=10.0.0.300 rate=1/s", 11, "is not an address");
    check_mistake("r address=10.0.0.0/33 rate=1/s", 11, "is not an address");
    check_mistake("r user=a..b rate=1/s", 8, "is not a range");
    check_mistake(
        "r job=a job=b rate=1/s", 9,
        "expected an option, found another condition: \"job\"; write '&' (and) or ',' (or)");
    check_mistake("y principal=y size>64kB rate=5", 15, "found another condition: \"size\"");
    check_mistake("r job=a& rate=1/s", 10, "found the option \"rate\"");
    check_mistake("r job=a, rate=1/s", 10, "found the option \"rate\"");
    check_mistake("r * rat=1/s", 5, "did you mean rate");
    check_mistake("r * rate=1/s weight=2", 14,
                  "\"weight\" is an option of the rules of mclock; those of tbf have rate=, each=, "
                  "burst=, all=, scope=, rank= and by=");
    check_mistake("r limit=2/s", 3, "is an option of the rules of mclock");
    check_mistake("r job=a AND op=read rate=1/s", 9,
                  "\"AND\" stands behind a test; and is written '&', or is written ','");
    check_mistake("r job=a or op=read rate=1/s", 9, "or is written ','");
    check_mistake("r job=a || op=read rate=1/s", 9, "or is written ','");
    check_mistake("r * rate=1/s rate=2/s", 14, "is there twice");
    check_mistake("r * rate={1/s 2/s}", 15, "is there twice");
    check_mistake("r * rate={1/s block}", 15, "block, 0 and unlimited stand alone");
    check_mistake("r * rate={0/s 1MB/s}", 15, "block, 0 and unlimited stand alone");
    check_mistake("r * rate=-1", 10, "does not end with /s");
    check_mistake("r * rate=-1/s", 10, "negative");
    check_mistake("r * rate=1e30", 10, "does not end with /s");
    check_mistake("r * rate=1e30/s", 10,
                  "\"1e30/s\" is not a whole number; write a rate such as 200/s or 50MB/s, at most "
                  "1000000000/s and 1TB/s");
    check_mistake("r * rate=50M/s", 10, "does not say of what; write bytes as 50MB/s");
    check_mistake("r * rate=1000000000000000000000000000000/s", 10, "too large");
    check_mistake("r * rate=1000000001/s", 10, "write at most 1000000000/s");
    check_mistake("r * rate=2TB/s", 10, "write at most 1TB/s");
    check_mistake("r * rate=200", 10, "does not end with /s");
    check_mistake("r * rate=1/s burst=0", 20, "lets nothing through");
    check_mistake("r * rate=1/s burst=1MB", 20, "has no rate of its kind");
    check_mistake("r * rate=block burst=1", 22, "has no rate of its kind");
    check_mistake("r * rate=1/s burst=100000", 20, "more than a day");
    check_mistake("r * rate=1/s burst=18446744073709551616", 20, "too large");
    check_mistake("r * rate=1/s rank=-1", 19, "too small");
    check_mistake("r * rate=1/s by=size", 17, "no classes by size");
    check_mistake("r * rate=1/s by={job job}", 22, "is there twice");
    check_mistake("default job=a rate=1/s", 1, "no other rule is for");
    check_mistake("default * rate=1/s rank=1", 1, "no other rule is for");
    check_mistake("r job=\xc3\xa9\xff rate=1/s", 8, "a byte here is not UTF-8");
    check_mistake("r\vjob=a rate=1/s", 2, "an invisible control character");
    check_mistake("r\tjob=\xef\xbb\xbf rate=1/s", 7, "an invisible control character");
    check_mistake("r job=\"a\tb\" rate=1/s", 9, "a tab in quotes");
    check_mistake("r job=\xc3\xa9 x", 9, "expected an option, found");
}

TEST_CASE("lrs rule: a mistake in a described request has its position", "[lrs]") {
    CHECK_FALSE(DescribedRequest::parse("job=a job=b").has_value());
    CHECK_FALSE(DescribedRequest::parse("job=a*").has_value());
    CHECK_FALSE(DescribedRequest::parse("job a").has_value());
    CHECK_FALSE(DescribedRequest::parse("op=ping").has_value());
    CHECK_FALSE(DescribedRequest::parse("size=x").has_value());
    const auto wrong = DescribedRequest::parse("op=read jbo=a");
    REQUIRE_FALSE(wrong.has_value());
    CHECK(wrong.error().column == 9);
}

TEST_CASE("lrs rule: a change leaves what it does not mention", "[lrs]") {
    const Rule old = rule_of("r job=a rate=100/s burst=7 rank=5 by=user");
    const auto changed = [&old](std::string_view text) {
        const auto rule = parse_change(text, old);
        REQUIRE(rule.has_value());
        return rule->text();
    };
    CHECK(changed("r") == old.text());
    CHECK(changed("r rate=200/s") == "r job=a rate=200/s by=user rank=5");
    CHECK(changed("r burst=9") == "r job=a rate=100/s burst=9 by=user rank=5");
    CHECK(changed("r rank=6") == "r job=a rate=100/s burst=7 by=user rank=6");
    CHECK(changed("r job=b") == "r job=b rate=100/s burst=7 rank=5");
    CHECK(changed("r rate=block") == "r job=a rate=block by=user rank=5");
}

TEST_CASE("lrs rule: a rule that is printed reads back to the same", "[lrs]") {
    for (const std::string_view text :
         {"r * rate=unlimited",
          "r job={\"a b\" \"*\" \"\" \"1..2\" x*y 5..9}&size>=1,op!=read rate=1/s",
          "r address={10.0.0.0/8 fe80::1 1.1.1.1..1.1.1.9 a*} rate={5/s 3KiB/s} burst={2 4097B} "
          "by=none",
          "r client=*AB* rate=block rank=0", "r size={1..2 4k}&size!=7 rate=0"}) {
        const Rule rule = rule_of(text);
        const Rule again = rule_of(rule.text());
        CHECK(again.text() == rule.text());
        CHECK(again.expression == rule.expression);
        CHECK(again.limits == rule.limits);
        CHECK(again.classes_by == rule.classes_by);
        CHECK(again.rank == rule.rank);
    }
}

TEST_CASE("lrs rule: long and hostile texts are refused or read at once", "[lrs]") {
    const auto repeated = [](std::string_view unit, std::size_t bytes) {
        std::string text;
        while (text.size() + unit.size() <= bytes) text += unit;
        return text;
    };
    constexpr std::size_t kRoom = kRuleBytesMax - 32;
    std::vector<std::string> texts{
        "r job=" + repeated("*a", kRoom) + " rate=1/s",
        "r job={" + repeated("*a ", kRoom) + "} rate=1/s",
        "r op={" + repeated("r* ", kRoom) + "} rate=1/s",
        "r op={" + repeated("*e*a*d ", kRoom) + "} rate=1/s",
        "r client={" + repeated("* ", kRoom) + "} rate=1/s",
        "r " + repeated("op=*,", kRoom) + "op=read rate=1/s",
        "r " + repeated("job=a&", kRoom) + "job=a rate=1/s",
        "r " + repeated("size<1,", kRoom) + "size<1 rate=1/s",
        "r job=" + std::string(kRoom, 'x') + " rate=1/s",
        "r " + std::string(kRoom, 'x') + "=a rate=1/s",
        "r * rate=" + std::string(kRoom, '9') + "/s",
        "r * rate=1/s by={" + repeated("job ", kRoom) + "}",
        "r * " + std::string(kRoom, ' '),
        std::string(kRuleBytesMax, '{'),
        std::string(kRuleBytesMax, '"'),
        "r job=" + std::string(1 << 20, '*'),
    };
    core::Random random(3);
    for (int i = 0; i < 20; ++i) {
        std::string noise = "r ";
        while (noise.size() < kRoom) noise += " &,=!<>{}\"*abjo.k"[random.below(17)];
        texts.push_back(noise);
    }
    for (const std::string& text : texts) {
        CAPTURE(text.substr(0, 40));
        const auto within = parse_rule(text).has_value() ? kReadWithin : kRefusedWithin;
        // What counts is the best of several tries.
        auto best = std::chrono::steady_clock::duration::max();
        for (int i = 0; i < 50 && best >= within; ++i) {
            const auto start = std::chrono::steady_clock::now();
            const auto rule = parse_rule(text);
            best = std::min(best, std::chrono::steady_clock::now() - start);
        }
        CHECK(best < within);
    }
    CHECK_FALSE(parse_rule(std::string(kRuleBytesMax + 1, 'a')).has_value());
}

TEST_CASE("lrs rule: a limit is of the server, or of the cluster", "[lrs]") {
    CHECK_FALSE(rule_of("r * rate=1/s").is_cluster);
    CHECK_FALSE(rule_of("r * rate=1/s scope=server").is_cluster);
    const Rule cluster = rule_of("r * rate=1/s scope=cluster rank=7");
    CHECK(cluster.is_cluster);
    CHECK(cluster.text() == "r * rate=1/s scope=cluster rank=7");
    const auto changed = parse_change("r scope=server", cluster);
    REQUIRE(changed.has_value());
    CHECK(changed->text() == "r * rate=1/s rank=7");
    CHECK(parse_change("r rate=2/s", cluster)->is_cluster);
    check_mistake("r * rate=1/s scope=world", 20, "is not a scope");
    check_mistake("r * rate=1/s scope=server scope=server", 27, "there twice");
    check_mistake("r * rate=1/s scope={server}", 20, "expected a single value, found '{'");
}

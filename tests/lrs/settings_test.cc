#include "lrs/settings.h"

#include <algorithm>

#include "config/current.h"
#include "config/schema.h"
#include "lrs/classes/described_request.h"
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

TEST_CASE("lrs settings: without a word it is crr by client and 128 foms", "[lrs]") {
    const auto loaded = load("");
    REQUIRE(loaded.has_value());
    CHECK((*loaded)->get<LrsSettings>().policy->name == "crr");
    CHECK((*loaded)->get<LrsSettings>().crr.by == Key::kClient);
    CHECK((*loaded)->get<LrsSettings>().max_foms == 128);
}

TEST_CASE("lrs settings: each policy has its map", "[lrs]") {
    const auto loaded = load(
        "lrs:\n"
        "  policy: deadline\n"
        "  crr: { quantum: 3 }\n"
        "  orr: { quantum: 16, ops: both }\n"
        "  trr: { ops: writes }\n"
        "  delay: { min: 1500us, max: 20ms, percent: 7 }\n"
        "  deadline: { policy: crr, wait_max: 250ms }\n");
    REQUIRE(loaded.has_value());
    const auto& settings = (*loaded)->get<LrsSettings>();
    CHECK(settings.crr.quantum == 3);
    CHECK(settings.orr == SortedTurnsSettings{.quantum = 16, .ops = OrderedOps::kBoth});
    CHECK(settings.trr == SortedTurnsSettings{.quantum = 256, .ops = OrderedOps::kWrites});
    CHECK(settings.delay == DelaySettings{.min = 1500us, .max = 20ms, .percent = 7});
    CHECK(settings.deadline.policy->name == "crr");
    CHECK(settings.deadline.wait_max == 250ms);
    CHECK(settings.make({.seed = 1}) != nullptr);
}

TEST_CASE("lrs settings: what localities have in common is the node's, also below a deadline",
          "[lrs]") {
    const auto of_node = [](std::string_view text) {
        const auto loaded = load(text);
        REQUIRE(loaded.has_value());
        return (*loaded)->get<LrsSettings>().decides().scope == PolicyEntry::Scope::kNode;
    };
    CHECK_FALSE(of_node(""));
    CHECK(of_node("lrs: { policy: tbf }"));
    CHECK(of_node("lrs: { policy: mclock }"));
    CHECK(of_node("lrs: { policy: deadline, deadline: { policy: tbf } }"));
    CHECK_FALSE(of_node("lrs: { policy: deadline, tbf: { rules: [ \"a * rate=1/s\" ] } }"));
}

TEST_CASE("lrs settings: localities share what is of the policy in force, and keep it", "[lrs]") {
    PolicyNode node(1);
    const auto share = [&node](std::string_view text) {
        const auto loaded = load(text);
        REQUIRE(loaded.has_value());
        return (*loaded)->get<LrsSettings>().share(node, Instant{});
    };
    const PolicyShare none = share("");
    CHECK(none.tbf.buckets == nullptr);
    CHECK(none.mclock.buckets == nullptr);
    const PolicyShare mclock = share("lrs: { policy: mclock, mclock: { rules: [ \"a job=a\" ] } }");
    CHECK(mclock.tbf.buckets == nullptr);
    REQUIRE(mclock.mclock.buckets != nullptr);
    CHECK(mclock.mclock.rules->rules().front().name == "a");
    const PolicyShare tbf = share("lrs: { policy: deadline, deadline: { policy: tbf } }");
    CHECK(tbf.tbf.buckets != nullptr);
    CHECK(tbf.mclock.buckets == nullptr);
    const PolicyShare again = share("lrs: { policy: mclock, mclock: { rules: [ \"b job=b\" ] } }");
    CHECK(again.mclock.buckets == mclock.mclock.buckets);
    CHECK(again.mclock.rules->rules().front().name == "b");
}

TEST_CASE("lrs settings: all of them change at run time", "[lrs]") {
    config::Schema schema;
    schema.add(lrs_section());
    const auto before = schema.load_text("", "fopd.yaml");
    const auto after = schema.load_text(
        "lrs: { policy: orr, max_foms: 7, crr: { quantum: 2 }, orr: { quantum: 2, ops: writes },"
        " trr: { quantum: 3 }, delay: { percent: 4 }, deadline: { wait_max: 5s, policy: orr },"
        " epoch_groups: { length: 1s, at_end: pause, others: wait, rules: [ a job=a ] } }",
        "fopd.yaml");
    REQUIRE(before.has_value());
    REQUIRE(after.has_value());
    config::Current current(*before);

    const auto applied = current.apply(*after);

    CHECK(applied.live.size() == 13);
    CHECK(applied.waiting.empty());
}

TEST_CASE("lrs settings: impossible values are refused", "[lrs]") {
    for (const char* text :
         {"crr: { quantum: 0 }", "crr: { quantum: 65536 }", "orr: { ops: some }",
          "delay: { min: 2s, max: 1s }", "delay: { percent: 101 }", "delay: { percent: -1 }",
          "deadline: { policy: deadline }", "deadline: { wait_max: 0s }", "fifo: {}",
          "epoch_groups: { length: 0s }", "epoch_groups: { length: 11s }",
          "epoch_groups: { at_end: stop }", "epoch_groups: { others: go_on }",
          "epoch_groups: { rules: [ a job=a rate=1/s ] }",
          "epoch_groups: { rules: [ a job=a, a job=b ] }"}) {
        CAPTURE(text);
        CHECK_FALSE(load("lrs: { " + std::string(text) + " }").has_value());
    }
}

TEST_CASE("lrs settings: physical offsets are refused for orr and trr", "[lrs]") {
    const auto loaded = load("lrs: { orr: { offsets: logical } }");
    REQUIRE(loaded.has_value());
    CHECK((*loaded)->get<LrsSettings>().orr == SortedTurnsSettings{});
    for (const char* policy : {"orr", "trr"}) {
        const auto refused = load("lrs: { " + std::string(policy) + ": { offsets: physical } }");
        REQUIRE_FALSE(refused.has_value());
        REQUIRE(refused.error().size() == 1);
        const config::Problem& problem = refused.error().front();
        CHECK(problem.key == "lrs." + std::string(policy) + ".offsets");
        CHECK(problem.wrong.find("is not known before a fop runs") != std::string::npos);
        CHECK(problem.right.find("elevator") != std::string::npos);
    }
    CHECK_FALSE(load("lrs: { orr: { offsets: other } }").has_value());
}

TEST_CASE("lrs settings: an unknown policy and no foms are refused", "[lrs]") {
    CHECK_FALSE(load("lrs: { policy: lifo }").has_value());
    CHECK_FALSE(load("lrs: { max_foms: 0 }").has_value());
}

namespace {

LrsSettings changed_by(const LrsSettings& settings, std::string_view policy,
                       std::vector<NamedValue> values) {
    const auto next = with_policy(settings, policy, values);
    if (!next) INFO(to_string(next.error().front()));
    REQUIRE(next.has_value());
    return *next;
}

std::string refusal(std::string_view policy, std::vector<NamedValue> values) {
    const auto next = with_policy(LrsSettings{}, policy, values);
    REQUIRE(!next.has_value());
    const config::Problem& problem = next.error().front();
    return problem.key + ": " + problem.wrong + ", " + problem.right;
}

}  // namespace

TEST_CASE("lrs settings: by hand a policy is set as in the file, and the rest stays", "[lrs]") {
    LrsSettings settings;
    settings.max_foms = 7;
    settings = changed_by(settings, "crr", {{"quantum", "16"}});
    CHECK(settings.policy->name == "crr");
    CHECK(settings.crr.quantum == 16);
    CHECK(settings.max_foms == 7);

    settings = changed_by(settings, "deadline", {{"policy", "crr"}, {"wait_max", "250ms"}});
    CHECK(settings.deadline.wait_max == 250ms);
    CHECK(settings.deadline.policy->name == "crr");
    CHECK(settings.crr.quantum == 16);

    settings = changed_by(settings, "tbf", {{"rules", R"(["a job=a rate=1/s", 'b * rate=0'])"}});
    CHECK(settings.tbf.rules == std::vector<std::string>{"a job=a rate=1/s", "b * rate=0"});
    CHECK(changed_by(settings, "tbf", {}).tbf == settings.tbf);
}

TEST_CASE("lrs settings: by hand the section is set, whatever the policy", "[lrs]") {
    LrsSettings settings =
        changed_by(LrsSettings{}, "crr", {{"max_foms", "4"}, {"io_wait_goal", "none"}});
    CHECK(settings.max_foms == 4);
    CHECK_FALSE(settings.io_wait_goal.has_value());
    CHECK(keys_that_differ(LrsSettings{}, settings) ==
          std::vector<std::string>{"lrs.max_foms", "lrs.io_wait_goal"});
    CHECK(to_yaml(settings) == "lrs:\n  policy: crr\n  max_foms: 4\n  io_wait_goal: none\n");

    settings = changed_by(settings, "deadline", {{"io_wait_goal", "2ms"}, {"policy", "crr"}});
    CHECK(settings.io_wait_goal == 2ms);
    CHECK(settings.deadline.policy->name == "crr");
}

TEST_CASE("lrs settings: values are printed in the form in which they are set by hand", "[lrs]") {
    using Values = std::vector<std::pair<std::string, std::string>>;
    const auto pairs = [](const std::vector<NamedValue>& values) {
        Values all;
        for (const NamedValue& each : values) all.emplace_back(each.key, each.value);
        return all;
    };
    const auto of = [&](std::string_view policy) {
        return pairs(
            values_of(LrsSettings{}, *std::ranges::find(policies(), policy, &PolicyEntry::name)));
    };
    CHECK(pairs(section_values(LrsSettings{})) ==
          Values{{"max_foms", "128"}, {"io_wait_goal", "1ms"}});
    CHECK(of("fifo").empty());
    CHECK(of("crr") == Values{{"quantum", "1"}, {"by", "client"}});
    CHECK(of("deadline") == Values{{"policy", "crr"}, {"wait_max", "1s"}});
    CHECK(of("mclock") == Values{{"capacity", "none"}, {"cost_unit", "64KiB"}});
    CHECK(of("tbf") == Values{{"cluster_interval", "100ms"}, {"cut_off", "auto"}});
}

TEST_CASE("lrs settings: crr takes turns by the configured key", "[lrs]") {
    LrsSettings settings = changed_by(LrsSettings{}, "crr", {{"by", "job"}});
    CHECK(settings.crr.by == Key::kJob);
    RequestAttributes about;
    about.job = "dd.0";
    CHECK(settings.class_of(about, {}) == "job=dd.0");
    settings = changed_by(settings, "crr", {{"by", "client"}});
    CHECK(settings.class_of(about, {}).empty());
    CHECK(refusal("crr", {{"by", "size"}}).starts_with("lrs.crr.by: "));
}

TEST_CASE("lrs settings: a policy takes over together with its rules", "[lrs]") {
    LrsSettings settings;
    settings.tbf.rules = {"old job=a rate=1/s"};
    const auto said = [&](std::string_view policy, std::vector<NamedValue> values,
                          std::string_view file) {
        const auto mistakes = set_rules(settings, policy, values, file);
        return mistakes ? to_string(*mistakes) : std::string();
    };
    CHECK(said("mclock", {}, "# shares\r\ngold user=ann weight=4\r\n\tdefault *\r\n").empty());
    CHECK(settings.mclock.rules == std::vector<std::string>{"gold user=ann weight=4"});
    CHECK(settings.tbf.rules == std::vector<std::string>{"old job=a rate=1/s"});
    CHECK(said("deadline", {{"policy", "tbf"}}, "a job=a rate=2/s").empty());
    CHECK(settings.tbf.rules == std::vector<std::string>{"a job=a rate=2/s"});
    CHECK(said("mclock", {}, "a job=a rate=1/s\nb jbo=b\n").find("\nline 2, column 3: ") !=
          std::string::npos);
    CHECK(said("crr", {}, "") ==
          "the policy crr has no rules; tbf, mclock and epoch_groups have some");
    CHECK(said("deadline", {}, "") ==
          "the policy crr has no rules; tbf, mclock and epoch_groups have some");
    CHECK(settings.mclock.rules == std::vector<std::string>{"gold user=ann weight=4"});
}

TEST_CASE("lrs settings: values refused in the file are refused by hand", "[lrs]") {
    CHECK(refusal("fairest", {{"quantum", "1"}}).starts_with("lrs.policy: "));
    CHECK(refusal("crr", {{"quantum", "0"}}).starts_with("lrs.crr.quantum: "));
    CHECK(refusal("crr", {{"quantun", "1"}}).find("quantum") != std::string::npos);
    CHECK(refusal("fifo", {{"quantum", "1"}}) ==
          "lrs.fifo.quantum: unknown key, fifo has nothing to set; known here: max_foms, "
          "io_wait_goal of lrs");
    CHECK(refusal("deadline", {{"quantum", "1"}}) ==
          "lrs.deadline.quantum: unknown key, known here: policy, wait_max of deadline; max_foms, "
          "io_wait_goal of lrs");
    CHECK(refusal("crr", {{"max_fom", "1"}}).find("did you mean \"max_foms\"?") !=
          std::string::npos);
    CHECK(refusal("crr", {{"policy", "tbf"}}).find("unknown key") != std::string::npos);
    CHECK(refusal("fifo", {{"max_foms", "0"}}).starts_with("lrs.max_foms: "));
    CHECK(refusal("fifo", {{"max_foms", "["}}).starts_with("lrs.max_foms: "));
    CHECK(refusal("crr", {{"quantum", "1\nw: 2"}}).find("is not a value") != std::string::npos);
    CHECK(refusal("crr", {{"quantum", "["}}).find("is not a value") != std::string::npos);
    CHECK(refusal("crr", {{"quantum", ""}}).starts_with("lrs.crr.quantum: "));
    CHECK(refusal("deadline", {{"policy", "deadline"}}).starts_with("lrs.deadline.policy: "));
    CHECK(refusal("tbf", {{"rules", "[a job=a rate=-1/s]"}}).starts_with("lrs.tbf.rules[0]: "));
}

TEST_CASE("lrs settings: the written section reads back, and has no defaults", "[lrs]") {
    CHECK(to_yaml(LrsSettings{}) == "lrs:\n  policy: crr\n");
    LrsSettings settings = changed_by(LrsSettings{}, "crr", {{"quantum", "16"}});
    settings = changed_by(settings, "tbf", {{"rules", R"(["a job={\"x y\" z} rate=1/s"])"}});
    const std::string text = to_yaml(settings);
    CAPTURE(text);
    CHECK(text.find("delay") == std::string::npos);
    const auto loaded = load(text);
    REQUIRE(loaded.has_value());
    CHECK(keys_that_differ(settings, (*loaded)->get<LrsSettings>()).empty());
    CHECK(keys_that_differ(LrsSettings{}, settings) ==
          std::vector<std::string>{"lrs.policy", "lrs.crr.quantum", "lrs.tbf.rules"});
}

TEST_CASE("lrs settings: those of policies that do not decide do not count", "[lrs]") {
    const auto with = [](std::string_view policy, std::uint32_t quantum) {
        PolicyChoice choice;
        choice.policy = &*std::ranges::find(policies(), policy, &PolicyEntry::name);
        choice.deadline.policy = &*std::ranges::find(policies(), "crr", &PolicyEntry::name);
        choice.crr.quantum = quantum;
        return choice;
    };
    CHECK(with("fifo", 1) == with("fifo", 2));
    CHECK(with("crr", 1) != with("crr", 2));
    CHECK(with("deadline", 1) != with("deadline", 2));
    CHECK(with("deadline", 1).is_kind_of(with("deadline", 2)));
    CHECK_FALSE(with("crr", 1).is_kind_of(with("deadline", 1)));
}

TEST_CASE("lrs settings: a described request has a class", "[lrs]") {
    const auto request = DescribedRequest::parse("job=a op=read");
    REQUIRE(request.has_value());
    const auto class_with = [&](std::string_view text) {
        const auto loaded = load(text);
        REQUIRE(loaded.has_value());
        const auto& settings = (*loaded)->get<LrsSettings>();
        PolicyNode node(1);
        return settings.class_of((*request)->attributes(),
                                 {.share = settings.share(node, Instant{})});
    };
    CHECK(class_with("") == "principal=");
    CHECK(class_with("lrs: { policy: fifo }") == "all");
    const std::string tbf = "tbf: { rules: [ \"mine job=* rate=1/s\" ] }";
    CHECK(class_with("lrs: { policy: tbf, " + tbf + " }") == "mine{job=a}");
    CHECK(class_with("lrs: { policy: deadline, deadline: { policy: tbf }, " + tbf + " }") ==
          "mine{job=a}");
    CHECK(class_with("lrs: { policy: deadline, " + tbf + " }") == "principal=");
    CHECK(class_with("lrs: { policy: mclock, mclock: { rules: [ \"mine job=* weight=2\" ] } }") ==
          "mine{job=a}");
    CHECK(class_with("lrs: { policy: mclock }") == "default");
}

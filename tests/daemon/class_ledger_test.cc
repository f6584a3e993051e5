// Goal: what classes had is counted for good under a bounded number of names, and who is held back
// is in the log, but not all the time.
// Method: news by hand, and a look at the figures.

#include "daemon/class_ledger.h"

#include <map>
#include <string>

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::daemon;

namespace {

constexpr Instant kLedgerStart{1000s};

class ClassSink final : public core::MetricSink {
public:
    void counter(std::string_view name, std::string_view /*help*/,
                 std::span<const core::Label> labels, double value) override {
        note(name, labels, value);
    }
    void gauge(std::string_view name, std::string_view /*help*/,
               std::span<const core::Label> labels, double value) override {
        note(name, labels, value);
    }
    void time_histogram(std::string_view, std::string_view, std::span<const core::Label>,
                        const core::Histogram&, core::Buckets) override {}

    double of(const std::string& name, const std::string& of_class) const {
        const auto found = all.find(name + " " + of_class);
        return found == all.end() ? -1 : found->second;
    }

    std::map<std::string, double> all;

private:
    void note(std::string_view name, std::span<const core::Label> labels, double value) {
        REQUIRE(labels.size() == 1);
        const bool is_of_rule = name.starts_with("fopd_lrs_rule_");
        REQUIRE(labels[0].key == (is_of_rule ? "rule" : "class"));
        const std::string key = std::string(name) + " " + std::string(labels[0].value);
        REQUIRE(all.emplace(key, value).second);
    }
};

class ThrottledEvents final : public core::EventSink {
public:
    void emit(core::Level, std::string_view name, std::span<const core::Field> fields) override {
        if (name == "lrs.rule_differs") {
            differing.emplace_back(std::get<std::string_view>(fields[0].value));
            return;
        }
        REQUIRE(name == "lrs.class_throttled");
        classes.emplace_back(std::get<std::string_view>(fields[0].value));
        last.clear();
        for (const core::Field& field : fields.subspan(1))
            last[std::string(field.key)] = field.value;
    }
    bool wants(core::Level) const override { return true; }

    std::vector<std::string> classes;
    std::vector<std::string> differing;  // Rules.
    std::map<std::string, decltype(core::Field::value)> last;
};

struct LedgerStage {
    ThrottledEvents events;
    ClassLedger ledger{events};

    ClassSink figures() const {
        ClassSink sink;
        ledger.collect(sink);
        return sink;
    }
    void take(std::size_t locality, std::vector<lrs::ClassNews> news, Duration at) {
        ledger.take(locality, news, kLedgerStart + at);
    }
};

lrs::ClassNews news_of(std::string name, std::uint64_t served, std::uint64_t queued = 0,
                       Duration throttled = 0s) {
    return {.name = std::move(name),
            .added = {.served = served, .bytes = served * 10, .throttled = throttled},
            .now = {.queued = queued,
                    .oldest = Duration(queued * 1s),
                    .operations_per_second = static_cast<double>(served)}};
}

}  // namespace

TEST_CASE("class ledger: the localities' news are added up, what waits is of now", "[daemon]") {
    LedgerStage stage;
    stage.take(0, {news_of("a", 3, 5), news_of("b", 1)}, 0s);
    stage.take(1, {news_of("a", 2, 1, 500ms)}, 0s);
    CHECK(stage.figures().of("fopd_lrs_served", "a") == 5);
    CHECK(stage.figures().of("fopd_lrs_served_bytes", "a") == 50);
    CHECK(stage.figures().of("fopd_lrs_throttled_seconds", "a") == 0.5);
    CHECK(stage.figures().of("fopd_lrs_class_queued", "a") == 6);
    CHECK(stage.figures().of("fopd_lrs_class_oldest_seconds", "a") == 5);
    stage.take(0, {}, 1s);
    CHECK(stage.figures().of("fopd_lrs_class_queued", "a") == 1);
    CHECK(stage.figures().of("fopd_lrs_class_oldest_seconds", "a") == 1);
    CHECK(stage.figures().of("fopd_lrs_served", "a") == 5);
    CHECK(stage.figures().of("fopd_lrs_served", "b") == 1);
}

TEST_CASE("class ledger: each rule in force has its figures, also without a class", "[daemon]") {
    LedgerStage stage;
    const auto news = [](const char* name, const char* rule, std::uint64_t served) {
        lrs::ClassNews of = news_of(name, served, 1, 1s);
        of.rule = rule;
        return of;
    };
    stage.ledger.set_rules(std::vector<std::string>{"jobs", "small", "default"});
    for (int i = 0; i < 500; ++i) {
        const std::string name = "jobs{job=" + std::to_string(i) + "}";
        stage.take(0, {news(name.c_str(), "jobs", 2), news("gone", "old", 5)}, 0s);
    }
    CHECK(stage.figures().of("fopd_lrs_rule_served", "jobs") == 1000);
    CHECK(stage.figures().of("fopd_lrs_rule_served_bytes", "jobs") == 10000);
    CHECK(stage.figures().of("fopd_lrs_rule_throttled_seconds", "jobs") == 500);
    CHECK(stage.figures().of("fopd_lrs_rule_queued", "jobs") == 1);
    CHECK(stage.figures().of("fopd_lrs_rule_served", "small") == 0);
    CHECK(stage.figures().of("fopd_lrs_rule_served", "old") == -1);

    stage.ledger.set_rules(std::vector<std::string>{"jobs"});
    CHECK(stage.figures().of("fopd_lrs_rule_served", "jobs") == 1000);
    CHECK(stage.figures().of("fopd_lrs_rule_served", "small") == -1);
}

TEST_CASE("class ledger: totals of a rule do not fall when it comes back into force", "[daemon]") {
    LedgerStage stage;
    const auto served = [&stage](std::uint64_t requests) {
        lrs::ClassNews news = news_of("jobs{job=a}", requests, 3, 2s);
        news.rule = "jobs";
        stage.take(0, {news}, 0s);
    };
    stage.ledger.set_rules(std::vector<std::string>{"jobs"});
    served(7);

    // Another policy decides. What the last pulse of the former one brings still counts.
    stage.ledger.set_rules({});
    CHECK(stage.figures().of("fopd_lrs_rule_served", "jobs") == -1);
    served(5);
    stage.take(0, {}, 1s);

    stage.ledger.set_rules(std::vector<std::string>{"jobs", "new"});
    CHECK(stage.figures().of("fopd_lrs_rule_served", "jobs") == 12);
    CHECK(stage.figures().of("fopd_lrs_rule_throttled_seconds", "jobs") == 4);
    CHECK(stage.figures().of("fopd_lrs_rule_queued", "jobs") == 0);
    CHECK(stage.figures().of("fopd_lrs_rule_served", "new") == 0);
}

TEST_CASE("class ledger: of rules out of force those longest out are dropped first", "[daemon]") {
    LedgerStage stage;
    const auto put_in_force = [&stage](const std::string& rule) {
        stage.ledger.set_rules(std::vector<std::string>{rule});
        lrs::ClassNews news = news_of(rule, 1);
        news.rule = rule;
        stage.take(0, {news}, 0s);
    };
    for (std::size_t i = 0; i < ClassLedger::kFormerRulesMax + 2; ++i) {
        put_in_force("r" + std::to_string(i));
    }
    // r0 is dropped; r1 is the one longest out of force that is kept.
    put_in_force("r1");
    CHECK(stage.figures().of("fopd_lrs_rule_served", "r1") == 2);
    put_in_force("r0");
    CHECK(stage.figures().of("fopd_lrs_rule_served", "r0") == 1);
}

TEST_CASE("class ledger: beyond a hundred names they are others, until one was long quiet",
          "[daemon]") {
    LedgerStage stage;
    for (int i = 0; i < 150; ++i) stage.take(0, {news_of("j" + std::to_string(i), 1)}, i * 1s);
    CHECK(stage.figures().all.size() == 5 * (ClassLedger::kNamedMax + 1));
    CHECK(stage.figures().of("fopd_lrs_served", "other") == 50);
    stage.take(0, {news_of("late", 7)}, ClassLedger::kForgottenAfter);
    CHECK(stage.figures().of("fopd_lrs_served", "late") == 7);
    CHECK(stage.figures().of("fopd_lrs_served", "j0") == -1);
    CHECK(stage.figures().of("fopd_lrs_served", "j1") == 1);
    CHECK(stage.figures().of("fopd_lrs_served", "other") == 51);
    CHECK(stage.figures().all.size() == 5 * (ClassLedger::kNamedMax + 1));
}

TEST_CASE("class ledger: totals do not fall when a policy forgets a class", "[daemon]") {
    LedgerStage stage;
    lrs::ClassNews reserved = news_of("a", 7, 0, 2s);
    reserved.added.as_reserved = 7;
    stage.take(0, {reserved}, 0s);
    stage.take(1, {news_of("a", 2)}, 0s);
    std::vector<lrs::ClassFigures> classes(2);
    classes[0] = {.name = "a", .queued = 4, .served = 1, .bytes = 10};
    classes[1] = {.name = "new", .served = 5, .bytes = 50, .throttled = 1s};
    stage.ledger.complete(classes);
    CHECK(classes[0].queued == 4);
    CHECK(classes[0].served == 9);
    CHECK(classes[0].bytes == 90);
    CHECK(classes[0].as_reserved == 7);
    CHECK(classes[0].throttled == 2s);
    CHECK(classes[1].served == 5);
    CHECK(classes[1].throttled == 1s);
}

TEST_CASE("class ledger: throttling is reported when it begins, and periodically", "[daemon]") {
    LedgerStage stage;
    for (int second = 0; second < 59; ++second) {
        stage.take(0, {news_of("a", 0, 1, 1s), news_of("b", 9)}, second * 1s);
    }
    CHECK(stage.events.classes == std::vector<std::string>{"a"});
    stage.take(0, {news_of("a", 0, 1, 1s)}, 60s);
    CHECK(stage.events.classes.size() == 2);
    stage.take(0, {}, 65s);
    stage.take(0, {news_of("a", 0, 1, 1s)}, 66s);
    CHECK(stage.events.classes.size() == 2);
    stage.take(0, {}, 80s);
    stage.take(0, {news_of("a", 0, 1, 1s)}, 81s);
    CHECK(stage.events.classes.size() == 3);
}

TEST_CASE("class ledger: a report of throttling sums up all localities", "[daemon]") {
    LedgerStage stage;
    stage.take(0, {news_of("a", 3, 4)}, 0s);
    stage.take(1, {news_of("a", 2, 7, 500ms)}, 0s);
    REQUIRE(stage.events.classes == std::vector<std::string>{"a"});
    CHECK(std::get<std::uint64_t>(stage.events.last.at("queued")) == 11);
    CHECK(std::get<double>(stage.events.last.at("oldest_s")) == 7);
    CHECK(std::get<double>(stage.events.last.at("ops_per_s")) == 5);
    CHECK(std::get<double>(stage.events.last.at("throttled_s")) == 0.5);
}

TEST_CASE("class ledger: a rule that differs is reported once while it does", "[daemon]") {
    LedgerStage stage;
    const auto in_cluster = [](std::string name, double share, bool differs) {
        lrs::ClassNews news = news_of(std::move(name), 1, 1);
        news.rule = "jobs";
        news.now.cluster = lrs::ClassInCluster{.share = share, .differs = differs};
        return news;
    };
    stage.take(0, {in_cluster("a", 0.25, false)}, 0s);
    CHECK(stage.events.differing.empty());
    CHECK(stage.figures().of("fopd_lrs_class_share", "a") == 0.25);
    stage.take(0, {in_cluster("a", 0.5, true), in_cluster("b", 1, true)}, 1s);
    stage.take(1, {in_cluster("a", 0.5, true)}, 1s);
    stage.take(0, {in_cluster("b", 1, true)}, 2s);
    CHECK(stage.events.differing == std::vector<std::string>{"jobs"});
    CHECK(stage.figures().of("fopd_lrs_class_share", "a") == 0.5);
    // It was the same for a while.
    stage.take(0, {in_cluster("a", 0.5, false)}, 60s);
    stage.take(0, {in_cluster("a", 0.5, true)}, 61s);
    CHECK(stage.events.differing.size() == 2);
}

// Goal: classes are served by their buckets, each in the order of arrival, and none holds back
// another.
// Method: examples; then drawn rules, requests, removals and changes of rules against a model that
// looks at every request each time it is asked.

#include "lrs/tbf/tbf.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/random.h"
#include "core/virtual_world.h"
#include "lrs/scheduler.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/lrs/tbf/tbf_stage.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr Instant kStart{10s};

const ClassFigures& figures_of(const std::vector<ClassFigures>& all, std::string_view name) {
    const auto found = std::ranges::find(all, name, &ClassFigures::name);
    CAPTURE(name);
    REQUIRE(found != all.end());
    return *found;
}

}  // namespace

TEST_CASE("lrs tbf: without rules it is the order of arrival", "[lrs]") {
    TbfStage stage;
    for (int i = 0; i < 20; ++i) stage.push(i % 3 == 0 ? "op=read" : "op=write job=a", kStart);
    const Numbers popped = stage.pop_all(kStart);
    CHECK(popped.size() == 20);
    CHECK(std::ranges::is_sorted(popped));
    CHECK(stage.again == kNever);
}

TEST_CASE("lrs tbf: a class has its burst at once and then its rate", "[lrs]") {
    TbfStage stage({"a job=a rate=100/s burst=3"});
    for (int i = 0; i < 6; ++i) stage.push("job=a", kStart);
    CHECK(stage.pop_all(kStart) == Numbers{0, 1, 2});
    CHECK(stage.again == kStart + 10ms);
    CHECK(stage.pop_all(kStart + 10ms - 1ns).empty());
    CHECK(stage.pop_all(kStart + 10ms) == Numbers{3});
    CHECK(stage.pop_all(kStart + 30ms) == Numbers{4, 5});
    CHECK(stage.again == kNever);
}

TEST_CASE("lrs tbf: a class without tokens holds back no other", "[lrs]") {
    TbfStage stage({"slow job=slow rate=1/s", "blocked job=blocked rate=block",
                    "fast job=fast rate=1000/s burst=1"});
    for (int i = 0; i < 3; ++i) {
        stage.push("job=slow", kStart);
        stage.push("job=blocked", kStart);
        stage.push("job=fast", kStart);
        stage.push("job=other", kStart);
    }
    // 0 4 8 slow, 1 5 9 blocked, 2 6 10 fast, 3 7 11 other.
    CHECK(stage.pop_all(kStart) == Numbers{0, 2, 3, 7, 11});
    CHECK(stage.pop_all(kStart + 1ms) == Numbers{6});
    CHECK(stage.pop_all(kStart + 2ms) == Numbers{10});
    CHECK(stage.pop_all(kStart + 1s) == Numbers{4});
    CHECK(stage.pop_all(kStart + 1h) == Numbers{8});
    CHECK(stage.again == kNever);
    CHECK(rule_figures(stage.policy(), "blocked", kStart + 1h).queued == 3);
}

TEST_CASE("lrs tbf: a class that has saved its burst goes at once beside one that waits", "[lrs]") {
    TbfStage stage({"slow job=slow rate=1/s burst=1", "saver job=saver rate=10/s burst=5"});
    for (int i = 0; i < 3; ++i) stage.push("job=slow", kStart);
    CHECK(stage.pop_all(kStart) == Numbers{0});
    CHECK(stage.pop_all(kStart + 100ms).empty());
    for (int i = 0; i < 6; ++i) stage.push("job=saver", kStart + 200ms);
    CHECK(stage.pop_all(kStart + 200ms) == Numbers{3, 4, 5, 6, 7});
    CHECK(stage.pop_all(kStart + 300ms) == Numbers{8});
    CHECK(stage.pop_all(kStart + 1s) == Numbers{1});
}

TEST_CASE("lrs tbf: each combination of the keys is a class of its own", "[lrs]") {
    TbfStage stage({"jobs job=*&op={read write} rate=1/s"});
    stage.push("job=a op=read", kStart);
    stage.push("job=a op=read", kStart);
    stage.push("job=a op=write", kStart);
    stage.push("job=b op=read", kStart);
    stage.push("job=b op=read", kStart);
    CHECK(stage.pop_all(kStart) == Numbers{0, 2, 3});
    CHECK(stage.policy().class_count() == 3);

    TbfStage together({"jobs job=*&op={read write} rate=1/s by=none"});
    for (const auto* const text : {"job=a op=read", "job=a op=write", "job=b op=read"}) {
        together.push(text, kStart);
    }
    CHECK(together.pop_all(kStart) == Numbers{0});
}

TEST_CASE("lrs tbf: bytes are charged by the size of the request", "[lrs]") {
    TbfStage stage({"a job=a rate=1MB/s burst=10kB"});
    for (int i = 0; i < 4; ++i) stage.push("job=a size=5kB", kStart);
    stage.push("job=a size=1kB", kStart);
    CHECK(stage.pop_all(kStart) == Numbers{0, 1});
    CHECK(stage.again == kStart + 5ms);
    CHECK(stage.pop_all(kStart + 10ms) == Numbers{2, 3});
    CHECK(stage.pop_all(kStart + 11ms) == Numbers{4});
}

TEST_CASE("lrs tbf: with both rates both hold", "[lrs]") {
    TbfStage stage({"a job=a rate={100/s 1MB/s} burst={2 100kB}"});
    for (int i = 0; i < 4; ++i) stage.push("job=a size=1", kStart);
    CHECK(stage.pop_all(kStart) == Numbers{0, 1});
    CHECK(stage.again == kStart + 10ms);
    CHECK(stage.pop_all(kStart + 20ms) == Numbers{2, 3});

    for (int i = 0; i < 3; ++i) stage.push("job=a size=90kB", kStart + 1s);
    CHECK(stage.pop_all(kStart + 1s) == Numbers{4});
    CHECK(stage.again == kStart + 1080ms);
    CHECK(stage.pop_all(kStart + 1080ms) == Numbers{5});
}

TEST_CASE("lrs tbf: classes that have tokens take turns, also within a moment", "[lrs]") {
    TbfStage stage({"a job=* rate=unlimited"});
    for (int i = 0; i < 4; ++i) stage.push("job=a", kStart);
    for (int i = 0; i < 4; ++i) stage.push("job=b", kStart);
    CHECK(stage.pop_all(kStart) == Numbers{0, 4, 1, 5, 2, 6, 3, 7});
}

TEST_CASE("lrs tbf: a removed request costs nothing, wherever it stands", "[lrs]") {
    TbfStage stage({"a job=a rate={1/s 1MB/s} burst={1 10kB}"});
    stage.push("job=a size=10kB", kStart);
    StageRequest& head = stage.push("job=a size=10kB", kStart);
    stage.push("job=a size=1", kStart);
    StageRequest& last = stage.push("job=a size=1", kStart);
    CHECK(stage.pop_all(kStart) == Numbers{0});
    stage.policy().remove(head);
    stage.policy().remove(last);
    CHECK(stage.pop_all(kStart + 1s) == Numbers{2});
    CHECK(stage.again == kNever);
}

TEST_CASE("lrs tbf: the request behind a removed one goes as soon as tokens allow", "[lrs]") {
    TbfStage stage({"a job=a rate=1kB/s burst=1000B"});
    stage.push("job=a size=1kB", kStart);
    StageRequest& large = stage.push("job=a size=1kB", kStart);
    stage.push("job=a size=1", kStart);
    CHECK(stage.pop_all(kStart) == Numbers{0});
    CHECK(stage.again == kStart + 1s);
    stage.remove(large);
    CHECK(stage.pop_all(kStart + 1ms) == Numbers{2});
}

TEST_CASE("lrs tbf: many removals leave nothing behind", "[lrs]") {
    TbfStage stage({"a job=* rate=1kB/s"});
    std::deque<StageRequest*> waiting;
    for (int i = 0; i < 20'000; ++i) {
        waiting.push_back(&stage.push(i % 2 == 0 ? "job=a size=3" : "job=b size=2", kStart));
        if (waiting.size() < 10) continue;
        stage.policy().remove(*waiting.front());
        waiting.pop_front();
    }
    CHECK(rule_figures(stage.policy(), "a", kStart).queued == 9);
    CHECK(stage.pop_all(kStart + 1h).size() == 9);
}

TEST_CASE("lrs tbf: idle classes are forgotten", "[lrs]") {
    TbfStage stage({"a job=* rate=1/s burst=1"}, {.forget_after = 10s});
    for (int i = 0; i < 100; ++i) stage.push("job=j" + std::to_string(i), kStart);
    CHECK(stage.pop_all(kStart).size() == 100);
    CHECK(stage.policy().class_count() == 100);
    for (int i = 0; i < 200; ++i) stage.policy().pop(kStart + 9s);
    CHECK(stage.policy().class_count() == 100);
    for (int i = 0; i < 200; ++i) stage.policy().pop(kStart + 10s);
    CHECK(stage.policy().class_count() == 0);
}

TEST_CASE("lrs tbf: classes come and go in bounded memory, and the limits hold", "[lrs]") {
    TbfStage stage({"a job=* rate=1/s burst=1"}, {.classes_max = 8}, 1, 16);
    std::map<int, int> served;
    for (int round = 0; round < 2000; ++round) {
        const int job = round % 40;
        stage.push("job=j" + std::to_string(job), kStart);
        for (const std::uint64_t number : stage.pop_all(kStart))
            ++served[static_cast<int>(number % 40)];
        REQUIRE(stage.policy().class_count() <= 8 + 1);
        REQUIRE(stage.buckets->count() <= 16);
    }
    // Those that found no room have one bucket together.
    int many = 0;
    for (const auto& [job, count] : served) many += count > 1 ? 1 : 0;
    CHECK(many <= 1);
    CHECK(served.size() >= 8);
    CHECK(served.size() <= 17);
}

TEST_CASE("lrs tbf: figures show throttled classes", "[lrs]") {
    TbfStage stage({"a job=* rate=10/s burst=1"});
    for (int i = 0; i < 11; ++i) stage.push("job=busy size=4k", kStart);
    stage.push("job=idle size=1", kStart);
    stage.pop_all(kStart);
    for (int i = 1; i <= 9; ++i) stage.pop_all(kStart + i * 100ms);
    const auto figures = class_figures(stage.policy(), kStart + 950ms);
    const ClassFigures& busy = figures_of(figures, "a{job=busy}");
    CHECK(busy.queued == 1);
    CHECK(busy.served == 10);
    CHECK(busy.bytes == 10 * 4096);
    CHECK(busy.throttled == 950ms);
    CHECK(busy.oldest == 950ms);
    CHECK(busy.operations_per_second == Approx(10));
    const ClassFigures& idle = figures_of(figures, "a{job=idle}");
    CHECK(idle.throttled == 0s);
    CHECK(idle.oldest == 0s);
    CHECK(rule_figures(stage.policy(), "a", kStart + 950ms).served == 11);

    CHECK(figures_of(class_figures(stage.policy(), kStart + 10s), "a{job=busy}")
              .operations_per_second == 0);
}

TEST_CASE("lrs tbf: throttled time never falls when requests are removed", "[lrs]") {
    TbfStage stage({"a job=* rate=1MB/s burst=1kB"});
    stage.push("job=a size=1k", kStart);
    stage.pop_all(kStart);
    StageRequest& large = stage.push("job=a size=1G", kStart);
    stage.push("job=a size=1", kStart);
    stage.pop_all(kStart);
    Duration last = 0s;
    const auto held_back = [&](Duration at) {
        return figures_of(class_figures(stage.policy(), kStart + at), "a{job=a}").throttled;
    };
    for (int i = 1; i <= 10; ++i) {
        if (i == 5) stage.remove(large);
        const Duration now = held_back(i * 100us);
        CHECK(now >= last);
        last = now;
    }
    CHECK(last >= 400us);
}

TEST_CASE("lrs tbf: a request is held back while its class has no tokens", "[lrs]") {
    TbfStage stage({"a job=* rate=10/s burst=1"});
    stage.push("job=a", kStart);
    Request& second = stage.push("job=a", kStart);
    CHECK_FALSE(stage.policy().is_held_back(second, kStart));
    stage.pop_all(kStart);
    CHECK(stage.policy().is_held_back(second, kStart + 99ms));
    CHECK_FALSE(stage.policy().is_held_back(second, kStart + 100ms));
}

TEST_CASE("lrs tbf: a blocked class is throttled all the time", "[lrs]") {
    TbfStage stage({"a job=a rate=block"});
    stage.push("job=a", kStart);
    stage.pop_all(kStart + 3s);
    CHECK(figures_of(class_figures(stage.policy(), kStart + 3s), "a{job=a}").throttled == 3s);
}

TEST_CASE("lrs tbf: a drain delivers throttled requests, without the removed ones", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        fopd::testing::Replay replay(seed);
        core::VirtualWorld world(seed);
        const auto reactor = world.make_reactor();
        RuleEdits book;
        REQUIRE(book.load(
            std::vector<std::string>{"a op=* rate=200/s by=client", "b op=echo rate=block rank=1"},
            Instant{}));
        const auto buckets = std::make_shared<BucketTable>(HashKey{}, 64);
        Scheduler scheduler(*reactor,
                            std::make_unique<Tbf>(buckets, book.current(), Tbf::Options{}));
        RequestMaker requests(seed);
        TakingGetter getter(scheduler);
        std::set<std::uint64_t> removed;
        for (int step = 0; step < 500; ++step) {
            const std::uint64_t what = world.random().below(10);
            if (what < 6) {
                NumberedRequest& request = requests.make();
                request.attributes.type = static_cast<std::uint16_t>(world.random().between(2, 13));
                scheduler.incoming(request);
            } else if (what < 8) {
                getter.ask(world.random().below(4));
            } else if (requests.count() > 0) {
                NumberedRequest& request = requests[world.random().below(requests.count())];
                if (!request.queued()) continue;
                scheduler.remove(request);
                removed.insert(request.number);
            }
            world.run_for(1ms);
        }
        scheduler.shutdown();
        getter.ask(requests.count());
        world.run_for(1s);

        auto seen = getter.taken();
        seen.insert(seen.end(), removed.begin(), removed.end());
        std::ranges::sort(seen);
        CHECK(seen.size() == requests.count());
        CHECK(std::ranges::adjacent_find(seen) == seen.end());
        CHECK(getter.nothing_count() == 1);
    }
}

namespace {

// The policy in its plainest form: all that waits in one list, tokens as fractions, and every
// question answered by looking at everything.
class PlainTbf {
public:
    explicit PlainTbf(RuleSetPtr rules) : rules_(std::move(rules)) {}

    struct Class {
        const Rule* rule = nullptr;
        std::vector<long double> tokens{0, 0};
        Instant filled_at{};
        Instant since{};
        bool is_new = true;
    };

    void push(StageRequest& request, Instant now) {
        Class& to = class_of(request, now);
        if (!head_of(to)) to.since = now;
        waiting_.push_back(&request);
    }
    void remove(StageRequest& request) { std::erase(waiting_, &request); }

    // By how much it may be wrong when it says that there are tokens: what the real one rounds.
    static long double slack(const Limit& limit) {
        return 1e-4L * static_cast<long double>(limit.burst) + 1e-3L;
    }

    // Whether the head of the request's class has tokens: surely, surely not, or nearly.
    enum class Verdict : std::uint8_t { kYes, kNo, kNearly };
    Verdict verdict(const StageRequest& request, Instant now) {
        Class& of = class_of(request, now);
        const Limits& limits = of.rule->limits;
        if (limits.is_blocked) return Verdict::kNo;
        Verdict verdict = Verdict::kYes;
        for (int i = 0; i < 2; ++i) {
            const auto& limit = i == 0 ? limits.operations : limits.bytes;
            if (!limit) continue;
            const long double needed = needs(request, i, *limit);
            const long double beyond =
                std::min(tokens(of, i, now), cap(of, request, i, now)) - needed;
            if (beyond < -slack(*limit)) return Verdict::kNo;
            if (beyond < slack(*limit)) verdict = Verdict::kNearly;
        }
        return verdict;
    }
    void take(StageRequest& request, Instant now) {
        Class& of = class_of(request, now);
        for (int i = 0; i < 2; ++i) {
            const auto& limit = i == 0 ? of.rule->limits.operations : of.rule->limits.bytes;
            if (!limit) continue;
            const auto index = static_cast<std::size_t>(i);
            of.tokens[index] =
                std::min(tokens(of, i, now), cap(of, request, i, now)) - cost(request, i);
        }
        of.filled_at = now;
        of.since = now;
        std::erase(waiting_, &request);
    }
    bool is_head(const StageRequest& request, Instant now) {
        return head_of(class_of(request, now)) == &request;
    }
    std::vector<StageRequest*> heads(Instant now) {
        std::vector<StageRequest*> heads;
        std::set<const Class*> seen;
        for (StageRequest* request : waiting_) {
            if (seen.insert(&class_of(*request, now)).second) heads.push_back(request);
        }
        return heads;
    }

    void set_rules(RuleSetPtr rules, Instant now) {
        const RuleSetPtr before = std::exchange(rules_, std::move(rules));
        std::map<Name, Class> kept;
        for (auto& [name, of] : classes_) {
            const Rule* const rule = rules_->find(name.first);
            if (rule == nullptr) continue;
            Class moved = of;
            moved.rule = rule;
            const Limits& old = of.rule->limits;
            for (int i = 0; i < 2; ++i) {
                const auto& old_limit = i == 0 ? old.operations : old.bytes;
                const auto& limit = i == 0 ? rule->limits.operations : rule->limits.bytes;
                if (!limit) continue;
                const auto burst = static_cast<long double>(limit->burst);
                const auto index = static_cast<std::size_t>(i);
                const bool is_carried = old_limit && of.rule->limits_id != rule->limits_id;
                if (is_carried) {
                    const long double had =
                        std::min(tokens(of, i, now), static_cast<long double>(old_limit->burst));
                    moved.tokens[index] = std::min(had, burst);
                } else if (!old_limit) {
                    moved.tokens[index] = burst;
                } else {
                    moved.tokens[index] = tokens(of, i, now);
                }
            }
            moved.filled_at = now;
            kept.emplace(name, moved);
        }
        classes_ = std::move(kept);
        for (auto& [name, of] : classes_) of.since = now;
        for (const StageRequest* request : waiting_) class_of(*request, now);
    }
    std::size_t waiting_count() const { return waiting_.size(); }
    const std::vector<StageRequest*>& waiting() const { return waiting_; }

private:
    using Name = std::pair<std::uint64_t, std::string>;

    Class& class_of(const StageRequest& request, Instant now) {
        const Rule& rule = rules_->rule_for(request.attributes);
        Class& of = classes_[{rule.id, rule.class_name(request.attributes)}];
        if (!of.is_new) return of;
        of.is_new = false;
        of.rule = &rule;
        of.filled_at = now;
        of.since = now;
        if (rule.limits.operations)
            of.tokens[0] = static_cast<long double>(rule.limits.operations->burst);
        if (rule.limits.bytes) of.tokens[1] = static_cast<long double>(rule.limits.bytes->burst);
        return of;
    }
    StageRequest* head_of(const Class& of) {
        for (StageRequest* request : waiting_) {
            if (&class_of(*request, of.filled_at) == &of) return request;
        }
        return nullptr;
    }
    static long double cost(const StageRequest& request, int index) {
        return index == 0 ? 1 : static_cast<long double>(request.attributes.size_bytes);
    }
    static long double needs(const StageRequest& request, int index, const Limit& limit) {
        return std::min(cost(request, index), static_cast<long double>(limit.burst));
    }
    static const Limit& limit_of(const Class& of, int index) {
        return index == 0 ? *of.rule->limits.operations : *of.rule->limits.bytes;
    }
    static long double tokens(const Class& of, int index, Instant now) {
        const auto rate = static_cast<long double>(limit_of_or_zero(of, index));
        return of.tokens[static_cast<std::size_t>(index)] +
               rate * static_cast<long double>((now - of.filled_at).count()) / 1e9L;
    }
    static std::uint64_t limit_of_or_zero(const Class& of, int index) {
        const auto& limit = index == 0 ? of.rule->limits.operations : of.rule->limits.bytes;
        return limit ? limit->per_second : 0;
    }
    // A full bucket, and above it what the one that waits would have had since it waits.
    static long double cap(const Class& of, const StageRequest& request, int index, Instant now) {
        const Limit& limit = limit_of(of, index);
        const long double gained = static_cast<long double>(limit.per_second) *
                                   static_cast<long double>((now - of.since).count()) / 1e9L;
        return static_cast<long double>(limit.burst) +
               std::min(gained, needs(request, index, limit));
    }

    RuleSetPtr rules_;
    std::map<Name, Class> classes_;
    std::vector<StageRequest*> waiting_;
};

std::string drawn_request(core::Random& random) {
    constexpr std::array kOps{"read", "write", "stat", "upload_write"};
    std::string text = "job=j" + std::to_string(random.below(4));
    text += " user=u" + std::to_string(random.below(3));
    text += std::string(" op=") + kOps[random.below(kOps.size())];
    text +=
        " size=" + std::to_string(random.below(8) == 0 ? random.below(60'000) : random.below(5000));
    return text;
}

std::string drawn_rate(core::Random& random) {
    switch (random.below(6)) {
        case 0: return "unlimited";
        case 1: return "block";
        case 2: return std::to_string(1 + random.below(300)) + "kB/s";
        case 3: return "{" + std::to_string(1 + random.below(400)) + "/s 400kB/s}";
        default: return std::to_string(1 + random.below(400)) + "/s";
    }
}

std::string drawn_expression(core::Random& random) {
    constexpr std::array kTests{
        "job=*",          "job=j1",          "job={j0 j2}",        "user=u1", "user!=u0",
        "op=read",        "op={read write}", "op=upload*",         "size<2k", "size>=4000",
        "job=j*&op=read", "user=u2,job=j3",  "size=1k..3k&job!=j0"};
    std::string text = kTests[random.below(kTests.size())];
    if (random.below(3) == 0)
        text += std::string(random.below(2) == 0 ? "&" : ",") + kTests[random.below(kTests.size())];
    return text;
}

std::string drawn_change(core::Random& random, RuleEdits& book) {
    const auto& rules = book.current()->rules();
    const std::string name = rules[random.below(rules.size())].name;
    if (name == kDefaultRule || random.below(2) == 0) return name + " rate=" + drawn_rate(random);
    if (random.below(2) == 0) return name + " rank=" + std::to_string(random.below(5));
    return name + " " + drawn_expression(random);
}

RuleRevisions::Edited drawn_edit(core::Random& random, RuleEdits& book, Instant now) {
    const auto& rules = book.current()->rules();
    const std::uint64_t what = random.below(10);
    if (what < 4 || rules.size() == 1) {
        const std::string rule = "r" + std::to_string(random.below(6)) + " " +
                                 drawn_expression(random) + " rate=" + drawn_rate(random) +
                                 (random.below(3) == 0 ? " by={job op}" : "");
        return book.add(rule, {.now = now});
    }
    if (what < 6) return book.del(rules[random.below(rules.size())].name, {.now = now});
    return book.change(drawn_change(random, book), {.now = now});
}

class Comparison {
public:
    explicit Comparison(std::uint64_t seed)
        : random_(seed), stage_({}, {.forget_after = 10h}), plain_(stage_.book.current()) {}

    void run(int steps) {
        for (int step = 0; step < steps; ++step) {
            now_ += Duration(random_.between(0, 20'000'000) >> random_.between(0, 12));
            const std::uint64_t what = random_.below(100);
            if (what < 55) {
                push();
            } else if (what < 60) {
                remove();
            } else if (what < 63) {
                edit();
            } else {
                pop_all();
            }
        }
    }

private:
    void push() {
        StageRequest& request = stage_.push(drawn_request(random_), now_);
        plain_.push(request, now_);
    }
    void remove() {
        if (plain_.waiting_count() == 0) return;
        StageRequest& request = *plain_.waiting()[random_.below(plain_.waiting_count())];
        stage_.remove(request);
        plain_.remove(request);
    }
    void edit() {
        const auto edited = drawn_edit(random_, stage_.book, now_);
        if (!edited) return;
        stage_.set_rules(*edited, now_);
        plain_.set_rules(*edited, now_);
    }
    void pop_all() {
        using Verdict = PlainTbf::Verdict;
        for (;;) {
            const Policy::Next next = stage_.pop(now_);
            if (next.request == nullptr) {
                REQUIRE(next.again > now_);
                for (StageRequest* const head : plain_.heads(now_)) {
                    CAPTURE(head->number);
                    REQUIRE(plain_.verdict(*head, now_) != Verdict::kYes);
                    // Nor would one have gone before the time to ask again.
                    if (next.again - now_ < 1s) {
                        REQUIRE(plain_.verdict(*head, next.again - 1us) != Verdict::kYes);
                    }
                }
                return;
            }
            auto& request = static_cast<StageRequest&>(*next.request);
            CAPTURE(request.number);
            REQUIRE(plain_.is_head(request, now_));
            REQUIRE(plain_.verdict(request, now_) != Verdict::kNo);
            plain_.take(request, now_);
        }
    }

    core::Random random_;
    TbfStage stage_;
    PlainTbf plain_;
    Instant now_ = kStart;
};

}  // namespace

TEST_CASE("lrs tbf: it delivers what a plain model delivers", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        fopd::testing::Replay replay(seed);
        CAPTURE(seed);
        Comparison(seed).run(600);
    }
}

// Goal: with its queues and what is put off until it matters, mclock does what it would do if it
// looked at every class each time.
// Method: a model that does look at all of them; drawn requests, removals and times go to both, in
// two localities that share their meters, and both must give the same requests.

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/lrs/mclock/mclock_stage.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

// Weights are powers of two, so that nothing is rounded.
struct ModelRule {
    const char* job;
    std::int64_t weight;
    std::uint64_t reservation;  // 0: none.
    std::uint64_t limit;        // The same.
    bool is_soft;

    std::string text() const {
        std::string text = std::string(job) + " job=" + job + " weight=" + std::to_string(weight);
        if (reservation > 0) text += " reservation=" + std::to_string(reservation) + "/s";
        if (limit > 0)
            text += (is_soft ? " soft_limit=" : " limit=") + std::to_string(limit) + "/s";
        return text;
    }
};
constexpr std::array kModelRules{
    ModelRule{"a", 1, 0, 0, false},     ModelRule{"b", 4, 0, 300, false},
    ModelRule{"c", 2, 200, 0, false},   ModelRule{"d", 1, 100, 250, false},
    ModelRule{"e", 8, 0, 150, true},    ModelRule{"f", 2, 50, 60, true},
    ModelRule{"g", 1, 400, 400, false},
};

struct ModelMeters {
    Ticks limit = 0;
    Ticks reservation = 0;
};

class ModelMclock {
public:
    explicit ModelMclock(std::array<ModelMeters, kModelRules.size()>& meters) : meters_(meters) {}

    void push(std::size_t rule, StageRequest& request, Instant now) {
        auto found = std::ranges::find(classes_, rule, &Class::rule);
        const bool is_new = found == classes_.end();
        if (is_new) {
            classes_.push_back({.rule = rule});
            found = classes_.end() - 1;
        }
        found->waiting.push_back(&request);
        if (found->waiting.size() > 1) return;
        found->since = ticks_at(now);
        found->share = std::max(found->share, now_ + (is_new ? part_of(*found) : 0));
        note_limit(*found, ticks_at(now));
    }

    void remove(StageRequest& request) {
        for (Class& each : classes_) std::erase(each.waiting, &request);
        note_empty();
    }

    StageRequest* pop(Instant at) {
        const Ticks now = ticks_at(at);
        for (Class& each : classes_) {
            if (each.waiting.empty() || !each.is_at_limit || limit_of(each) > now) continue;
            each.is_at_limit = false;
            each.share = std::max(each.share, now_ - part_of(each));
        }
        if (Class* const first = first_reserved(now)) return serve_reserved(*first, now);
        while (Class* const first = first_by_share(false)) {
            if (note_limit(*first, now)) continue;
            take(meters_[first->rule].limit, *first, rule_of(*first).limit, now, 10ms);
            return serve_by_share(*first, now);
        }
        Class* const over = first_by_share(true);
        return over == nullptr ? nullptr : serve_by_share(*over, now);
    }

private:
    // In the order they came first.
    struct Class {
        std::size_t rule = 0;
        std::vector<StageRequest*> waiting{};
        std::int64_t share = 0;
        Ticks since = 0;
        bool is_at_limit = false;
    };

    static const ModelRule& rule_of(const Class& of) { return kModelRules[of.rule]; }
    static std::int64_t cost_of(const Class& of) {
        return CostModel().cost_of(of.waiting.front()->attributes.size_bytes);
    }
    static std::int64_t part_of(const Class& of) {
        return cost_of(of) * 65536 / rule_of(of).weight;
    }
    Ticks limit_of(const Class& of) const {
        return rule_of(of).limit == 0 ? 0 : meters_[of.rule].limit;
    }
    bool note_limit(Class& of, Ticks now) {
        of.is_at_limit = limit_of(of) > now;
        return of.is_at_limit;
    }
    static void take(Ticks& meter, const Class& of, std::uint64_t rate, Ticks now, Duration late) {
        if (rate == 0) return;
        const Ticks earliest = std::max(of.since, now - late.count() * kTicksPerNs);
        meter = std::max(meter, earliest) + CostPace(rate).time_of(cost_of(of));
    }

    Ticks due_of(const Class& of) const {
        const Ticks due = meters_[of.rule].reservation;
        return rule_of(of).is_soft ? due : std::max(due, limit_of(of));
    }
    Class* first_reserved(Ticks now) {
        Class* first = nullptr;
        for (Class& each : classes_) {
            if (each.waiting.empty() || rule_of(each).reservation == 0) continue;
            if (due_of(each) > now) continue;
            if (first == nullptr || due_of(each) < due_of(*first)) first = &each;
        }
        return first;
    }
    Class* first_by_share(bool is_over) {
        Class* first = nullptr;
        for (Class& each : classes_) {
            if (each.waiting.empty() || each.is_at_limit != is_over) continue;
            if (is_over && !rule_of(each).is_soft) continue;
            if (first == nullptr || each.share < first->share) first = &each;
        }
        return first;
    }

    StageRequest* serve_reserved(Class& of, Ticks now) {
        ModelMeters& meters = meters_[of.rule];
        if (limit_of(of) <= now) take(meters.limit, of, rule_of(of).limit, now, 10ms);
        take(meters.reservation, of, rule_of(of).reservation, now, 1s);
        const std::int64_t part = part_of(of);
        of.share = std::min(of.share + part, std::max(of.share, now_ + 64 * part));
        return serve(of, now);
    }
    StageRequest* serve_by_share(Class& of, Ticks now) {
        now_ = std::max(now_, of.share);
        of.share += part_of(of);
        return serve(of, now);
    }
    StageRequest* serve(Class& of, Ticks now) {
        most_ = std::max(most_, of.share);
        StageRequest* const request = of.waiting.front();
        of.waiting.erase(of.waiting.begin());
        if (!of.waiting.empty()) note_limit(of, now);
        note_empty();
        return request;
    }
    void note_empty() {
        const bool is_empty =
            std::ranges::all_of(classes_, [](const Class& each) { return each.waiting.empty(); });
        if (is_empty) now_ = most_;
    }

    std::array<ModelMeters, kModelRules.size()>& meters_;
    std::deque<Class> classes_;
    std::int64_t now_ = 0;
    std::int64_t most_ = 0;
};

struct ModelRun {
    std::uint64_t seed;
    std::uint64_t step_max_us;  // Time goes on by up to so much.
    std::uint64_t push_percent;
};

void compare_with_model(const ModelRun& run) {
    CAPTURE(run.seed, run.step_max_us, run.push_percent);
    core::Random random(run.seed);
    std::vector<std::string> rules;
    for (const ModelRule& rule : kModelRules) rules.push_back(rule.text());
    MclockStage stage(rules, 2);
    std::array<ModelMeters, kModelRules.size()> meters{};
    std::array<ModelMclock, 2> models{ModelMclock(meters), ModelMclock(meters)};
    std::array<std::vector<StageRequest*>, 2> waiting;
    Instant now = kMclockStart;
    for (int step = 0; step < 4000; ++step) {
        now += Duration(1000 * static_cast<std::int64_t>(random.below(run.step_max_us + 1)));
        // Now and then nobody wants anything for long.
        if (random.below(500) == 0) now += 3s;
        const std::size_t here = random.below(2);
        if (random.below(100) < run.push_percent) {
            const std::size_t rule = random.below(kModelRules.size());
            const std::string size = std::to_string(random.below(4) * 100'000);
            StageRequest& request = stage.push(
                std::string("job=") + kModelRules[rule].job + " size=" + size, now, here);
            models[here].push(rule, request, now);
            waiting[here].push_back(&request);
        } else if (random.below(20) == 0 && !waiting[here].empty()) {
            StageRequest* const request = waiting[here][random.below(waiting[here].size())];
            stage.policies[here]->remove(*request);
            models[here].remove(*request);
            std::erase(waiting[here], request);
        } else {
            const Policy::Next next = stage.policies[here]->pop(now);
            StageRequest* const wanted = models[here].pop(now);
            REQUIRE(next.request == wanted);
            if (wanted != nullptr) {
                std::erase(waiting[here], wanted);
            } else {
                REQUIRE((next.again > now && (next.again == kNever) == waiting[here].empty()));
            }
        }
    }
}

}  // namespace

TEST_CASE("lrs mclock model: both give the same requests in the same order", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        for (const std::uint64_t step_max_us : {0U, 300U, 3000U, 30'000U}) {
            for (const std::uint64_t push_percent : {40U, 50U, 60U}) {
                compare_with_model(
                    {.seed = seed, .step_max_us = step_max_us, .push_percent = push_percent});
            }
        }
    }
}

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lrs/class_figures.h"
#include "lrs/policy.h"
#include "tests/catch.h"
#include "tests/lrs/stage_request.h"

namespace fopd::lrs::testing {

// Of each class that the policy knows, by sort position and name.
inline std::vector<ClassFigures> class_figures(Policy& policy, Instant now) {
    std::vector<ClassFigures> all;
    REQUIRE(policy.visit_classes(now,
                                 [&](const ClassView& of) { all.push_back(figures_of(of, now)); }));
    return together(std::move(all), 100);
}

inline std::size_t class_count(Policy& policy, Instant now) {
    std::size_t count = 0;
    REQUIRE(policy.visit_classes(now, [&](const ClassView& /*of*/) { ++count; }));
    return count;
}

// The sum of a rule's classes.
inline ClassFigures rule_figures(Policy& policy, std::string_view rule, Instant now) {
    ClassFigures sum;
    REQUIRE(policy.visit_classes(now, [&](const ClassView& of) {
        if (of.rule == rule) sum.add(figures_of(of, now));
    }));
    return sum;
}

// Policies of one kind, one for each locality, and the requests they were given, which are
// numbered.
template <typename Kind>
class PolicyStage {
public:
    Kind& policy() { return *policies.front(); }

    StageRequest& make(std::string_view text) {
        StageRequest& request = requests.emplace_back(text);
        request.number = requests.size() - 1;
        return request;
    }
    StageRequest& push(std::string_view text, Instant now, std::size_t locality = 0) {
        StageRequest& request = make(text);
        request.attributes.arrived_at = now;
        request.is_waiting = true;
        request.locality = locality;
        policies[locality]->push(request, now);
        return request;
    }
    void push_many(int count, std::string_view text, Instant now, std::size_t locality = 0) {
        for (int i = 0; i < count; ++i) push(text, now, locality);
    }

    Policy::Next pop(Instant now, std::size_t locality = 0) {
        const Policy::Next next = policies[locality]->pop(now);
        if (next.request != nullptr) static_cast<StageRequest*>(next.request)->is_waiting = false;
        return next;
    }
    void remove(StageRequest& request) {
        policies[request.locality]->remove(request);
        request.is_waiting = false;
    }

    // The numbers of all that can go at `now`, in their order.
    std::vector<std::uint64_t> pop_all(Instant now, std::size_t locality = 0) {
        std::vector<std::uint64_t> numbers;
        for (;;) {
            const Policy::Next next = pop(now, locality);
            if (next.request == nullptr) {
                again = next.again;
                REQUIRE(again > now);
                return numbers;
            }
            numbers.push_back(static_cast<StageRequest*>(next.request)->number);
        }
    }

    std::deque<StageRequest> requests;
    std::vector<std::unique_ptr<Kind>> policies;
    Instant again = kNever;  // What the last pop_all() was told.
};

}  // namespace fopd::lrs::testing

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/policies.h"
#include "lrs/tbf/tbf.h"
#include "tests/catch.h"
#include "tests/lrs/policy_stage.h"
#include "tests/lrs/tbf/rule_edits.h"

namespace fopd::lrs::testing {

// Rules, and the policies of as many localities as are wanted, which share the node's buckets.
class TbfStage : public PolicyStage<Tbf> {
public:
    explicit TbfStage(std::vector<std::string> rules = {}, const Tbf::Options& options = {},
                      std::size_t locality_count = 1, std::size_t bucket_count = 4096) {
        buckets = std::make_shared<BucketTable>(HashKey{.first = 3, .second = 4}, bucket_count);
        const auto loaded = book.load(rules, Instant{});
        if (!loaded) INFO(to_string(loaded.error()));
        REQUIRE(loaded.has_value());
        for (std::size_t i = 0; i < locality_count; ++i) {
            policies.push_back(std::make_unique<Tbf>(buckets, book.current(), options));
        }
    }

    // And moves what waits, the oldest first.
    void set_rules(const RuleSetPtr& rules, Instant now, std::size_t locality = 0) {
        Tbf& policy = *policies[locality];
        if (policy.set_rules(rules, now) == Policy::Adapted::kAtOnce) return;
        for (StageRequest& request : requests) {
            if (request.is_waiting && request.locality == locality) policy.move(request, now);
        }
    }

    using Edited = RuleRevisions::Edited;
    void put_in_force(const Edited& edited, Instant now) {
        if (!edited) INFO(to_string(edited.error()));
        REQUIRE(edited.has_value());
        for (std::size_t i = 0; i < policies.size(); ++i) set_rules(*edited, now, i);
    }
    void add(std::string_view rule, Instant now) {
        put_in_force(book.add(rule, {.now = now}), now);
    }
    void change(std::string_view rule, Instant now) {
        put_in_force(book.change(rule, {.now = now}), now);
    }
    void del(std::string_view rule, Instant now) {
        put_in_force(book.del(rule, {.now = now}), now);
    }

    RuleEdits book;
    std::shared_ptr<BucketTable> buckets;
};

using Numbers = std::vector<std::uint64_t>;

}  // namespace fopd::lrs::testing

#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/classes/rule_index.h"
#include "lrs/mclock/rule.h"

namespace fopd::lrs {

// The default rule where nobody gives one.
inline constexpr std::string_view kPlainDefault = "default *";

// Rules in the order they are looked at, of which the first that is for a request decides. The last
// is the default rule, which is for every request. Never changed, only replaced; any thread.
class MclockRules {
public:
    using Ptr = std::shared_ptr<const MclockRules>;
    using Loaded = std::expected<Ptr, RuleMistakes>;

    // These rules, of which those that are as they were in `before` keep their classes and meters.
    // Without a default rule it has the weight 1.
    static Loaded load(std::span<const std::string> rules, const Ptr& before = nullptr);
    // The default rule alone.
    static Ptr none(std::uint64_t version);

    // Each change has a version of its own, higher than all before.
    std::uint64_t version() const { return version_; }
    const std::vector<MclockRule>& rules() const { return rules_; }
    const MclockRule& rule_for(const RequestAttributes& attributes, RuleMemo* memo = nullptr) const;

    // What all classes reserve together.
    std::uint64_t reserved_per_second() const;
    // "gold 2 x 500/s, silver 100/s".
    std::string reservations_text() const;

private:
    void settle(MclockRule& rule, const MclockRules* before);
    void put_in_order();

    std::uint64_t version_ = 0;
    std::vector<MclockRule> rules_;
    RuleIndex index_;
    std::uint64_t last_id_ = 0;
};

}  // namespace fopd::lrs

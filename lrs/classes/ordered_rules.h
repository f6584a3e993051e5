#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/ensure.h"
#include "lrs/classes/class_rule.h"
#include "lrs/classes/rule_index.h"

namespace fopd::lrs {

// Rules in the order in which they are tested: the first that matches a request decides. The last
// is the default rule, which matches every request. Immutable, replaced as a whole; any thread.
class OrderedRules {
public:
    virtual ~OrderedRules() = default;

    // Each change has its own version, higher than all earlier ones.
    std::uint64_t version() const { return version_; }
    virtual std::size_t count() const = 0;
    // REQUIRES, here and below: `index` is below count().
    virtual const ClassRule& at(std::size_t index) const = 0;
    // The rule as in a file of rules.
    virtual std::string text(std::size_t index) const = 0;
    // The index of the rule that decides for a request with these attributes.
    std::size_t index_for(const RequestAttributes& attributes, RuleMemo* memo = nullptr) const {
        const auto first = index_.first_for(attributes, memo);
        ENSURE(first.has_value());  // The default rule matches every request.
        return *first;
    }
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < count(); ++i) names.push_back(at(i).name);
        return names;
    }

protected:
    std::uint64_t version_ = 0;
    RuleIndex index_;
};
using OrderedRulesPtr = std::shared_ptr<const OrderedRules>;

// The rules of one policy.
template <typename AnyRule>
class OrderedRulesOf : public OrderedRules {
public:
    const std::vector<AnyRule>& rules() const { return rules_; }
    const AnyRule& rule_for(const RequestAttributes& attributes, RuleMemo* memo = nullptr) const {
        return rules_[index_for(attributes, memo)];
    }
    // Null: there is no such rule.
    const AnyRule* find(std::string_view name) const {
        const auto rule = std::ranges::find(rules_, name, &AnyRule::name);
        return rule == rules_.end() ? nullptr : &*rule;
    }

    std::size_t count() const override { return rules_.size(); }
    const ClassRule& at(std::size_t index) const override { return rules_[index]; }
    std::string text(std::size_t index) const override { return rules_[index].text(); }

protected:
    std::vector<AnyRule> rules_;
};

}  // namespace fopd::lrs

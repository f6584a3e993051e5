#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/classes/bucket.h"
#include "lrs/classes/expression.h"
#include "lrs/classes/keyed_hash.h"

namespace fopd::lrs {

// The rule whose classes take what no other rule is for. Always there, always last.
inline constexpr std::string_view kDefaultRule = "default";

// For whom a rule is, and into which classes it divides them. What each class may have is for the
// policy to say.
struct ClassRule {
    static constexpr std::uint32_t kRankDefault = 1000;
    static constexpr std::uint32_t kRankMax = 1'000'000;

    std::string name;
    Expression expression;
    KeySet classes_by;                  // A class for each combination of their values.
    std::uint32_t rank = kRankDefault;  // The lowest is looked at first.
    std::string expression_text;        // In the shortest form that reads back to the same.

    // Given by the set it belongs to. `id` is new when other requests are meant, or other classes;
    // `limits_id` and the bucket when the classes get other limits. The bucket is that of the one
    // class there is without `classes_by`, else of those for which there is no room.
    std::uint64_t id = 0;
    std::uint64_t limits_id = 0;
    std::shared_ptr<Bucket> own_bucket;

    bool matches(const RequestAttributes& attributes) const {
        return lrs::matches(expression, attributes);
    }
    bool has_same_classes_as(const ClassRule& other) const {
        return expression == other.expression && classes_by == other.classes_by;
    }
    // The class of a request that the rule is for. Whoever has other limits has another bucket.
    ClassHash class_of(const RequestAttributes& attributes, const HashKey& key) const;
    ClassHash bucket_of(const ClassHash& of_class, const HashKey& key) const;
    ClassHash own_class(const HashKey& key) const;
    // "jobs{job=dd.0 op=read}", or the rule's name alone.
    std::string class_name(const RequestAttributes& attributes) const;
    // That of the class with the rule's own bucket.
    std::string own_class_name() const;

protected:
    // As a parser reads it: around what the policy says.
    std::string text_around(const std::string& options) const;

private:
    // The request's value of a key that names the class. Of several groups it is the first one that
    // would match the rule if it were the only group: so all members of a group that a rule asks
    // for are in one class, whatever other groups they have.
    std::string_view text_for(Key by, const RequestAttributes& attributes, Digits& digits) const;
};

// The default rule is the last, and each other one behind those of its rank. libstdc++ 12's
// stable_sort is deprecated code. Requires: there is a default rule.
template <typename AnyRule>
void sort_by_rank(std::vector<AnyRule>& rules) {
    const auto last = std::ranges::find(rules, kDefaultRule, &AnyRule::name);
    std::rotate(last, last + 1, rules.end());
    for (auto each = rules.begin(); each != rules.end() - 1; ++each) {
        const auto place = std::ranges::upper_bound(rules.begin(), each, each->rank, {},
                                                    [](const AnyRule& rule) { return rule.rank; });
        std::rotate(place, each, each + 1);
    }
}

// One as it is, several in braces.
std::string one_or_list(const std::vector<std::string>& words);

}  // namespace fopd::lrs

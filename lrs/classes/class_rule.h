#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/stable_sort.h"
#include "lrs/classes/bucket.h"
#include "lrs/classes/expression.h"
#include "lrs/classes/keyed_hash.h"

namespace fopd::lrs {

// The rule for all requests that no other rule matches. It always exists and is always last.
inline constexpr std::string_view kDefaultRule = "default";

// Says which requests a rule matches, and how it divides them into classes. The policy defines what
// each class may have.
struct ClassRule {
    static constexpr std::uint32_t kRankDefault = 1000;
    static constexpr std::uint32_t kRankMax = 1'000'000;

    std::string name;
    Expression expression;
    KeySet classes_by;                  // Each combination of values of these keys is a class.
    std::uint32_t rank = kRankDefault;  // Rules with lower ranks are tested first.
    std::string expression_text;        // In the shortest form that parses to the same expression.

    // Set by the rule set. `id` changes when the matched requests or the classes change;
    // `limits_id` and the bucket change when the limits do. If `classes_by` is empty, own_bucket is
    // the bucket of the only class; otherwise it is shared by the classes for which the bucket
    // table has no room.
    std::uint64_t id = 0;
    std::uint64_t limits_id = 0;
    std::shared_ptr<Bucket> own_bucket;

    bool matches(const RequestAttributes& attributes) const {
        return lrs::matches(expression, attributes);
    }
    bool has_same_classes_as(const ClassRule& other) const {
        return expression == other.expression && classes_by == other.classes_by;
    }
    // The class of a request. REQUIRES: the request matches the rule.
    ClassHash class_of(const RequestAttributes& attributes, const HashKey& key) const;
    // The key of a class in the table of buckets. It changes with the limits, so that a bucket is
    // used with one set of limits only.
    ClassHash bucket_of(const ClassHash& of_class, const HashKey& key) const;
    // The class that uses own_bucket.
    ClassHash own_class(const HashKey& key) const;
    // Like class_of() and own_class(), but made of the rule's name instead of its id, so that the
    // result is equal on all nodes that have the same key.
    ClassHash cluster_class(const RequestAttributes& attributes, const HashKey& key) const;
    ClassHash own_cluster_class(const HashKey& key) const;
    // "jobs{job=dd.0 op=read}", or the rule's name alone.
    std::string class_name(const RequestAttributes& attributes) const;
    // The name of the class that uses the rule's own bucket.
    std::string own_class_name() const;

protected:
    // The rule as text that parses to the same rule; `options` is the text of the policy's options.
    std::string text_around(const std::string& options) const;

private:
    void add_values(KeyedHash& hash, const RequestAttributes& attributes) const;
    // The request's value of the key `by`, as text. For a caller with several groups, the value of
    // `group` is the first group with which alone the request would match. Example: a rule tests
    // for group "hep"; then callers in {hep, it} and {bio, hep} are in the same class, hep.
    std::string_view text_for(Key by, const RequestAttributes& attributes, Digits& digits) const;
};

// Sorts stably by rank, with the default rule last.
template <typename AnyRule>
void sort_by_rank(std::vector<AnyRule>& rules) {
    core::stable_sort(rules, std::less{}, [](const AnyRule& rule) {
        return std::pair(rule.name == kDefaultRule, rule.rank);
    });
}

// A single word as it is, several words in braces.
std::string one_or_list(const std::vector<std::string>& words);

}  // namespace fopd::lrs

#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/classes/rule_edit.h"
#include "lrs/classes/rule_index.h"
#include "lrs/tbf/rule.h"
#include "lrs/tbf/rule_parser.h"

namespace fopd::lrs {

// The default rule where nobody gives one.
inline constexpr std::string_view kUnlimitedDefault = "default * rate=unlimited";

// Rules in the order they are looked at, of which the first that is for a request decides. The last
// is the default rule, which is for every request. Never changed, only replaced; any thread.
class RuleSet {
public:
    // Each change has a version of its own, higher than all before.
    std::uint64_t version() const { return version_; }
    const std::vector<Rule>& rules() const { return rules_; }
    const Rule& rule_for(const RequestAttributes& attributes, RuleMemo* memo = nullptr) const;
    // Null: there is none.
    const Rule* find(std::string_view name) const;
    const Rule* find(std::uint64_t id) const;

private:
    friend class RuleBook;

    std::uint64_t version_ = 0;
    std::vector<Rule> rules_;
    RuleIndex index_;
};
using RuleSetPtr = std::shared_ptr<const RuleSet>;

// The rules in force, and how they are changed: as a whole or not at all. A change that is refused
// changes nothing. One thread; the sets are for all.
class RuleBook {
public:
    // With the default rule alone, which has no limit.
    explicit RuleBook(std::uint64_t version = 1);

    const RuleSetPtr& current() const { return current_; }

    struct Edit {
        Instant now;
        // Refused when the rules have another version meanwhile.
        std::optional<std::uint64_t> only_at = std::nullopt;
    };
    using Edited = std::expected<RuleSetPtr, RuleMistakes>;

    // A new rule, behind those of its rank.
    Edited add(std::string_view rule, const Edit& edit);
    // "NAME [EXPRESSION] [rate=…] …": what is not said stays.
    Edited change(std::string_view change, const Edit& edit);
    // The default rule stays.
    Edited del(std::string_view name, const Edit& edit);
    // These rules and no others; without a default rule it has no limit. What is the same as before
    // keeps its classes and buckets.
    Edited load(std::span<const std::string> rules, const Edit& edit);
    // The same from a file: a rule a line; blank lines and those that begin with '#' do not count.
    Edited load_text(std::string_view text, const Edit& edit);
    Edited apply(const RuleEdit& edit, Instant now);

private:
    Edited load_lines(std::span<const RuleLine> lines, const Edit& edit);
    std::optional<RuleMistake> refused(const Edit& edit) const;
    void settle(Rule& rule, const Rule* old, Instant now);
    static void settle_all(Rule& rule, const Rule* old, Instant now);
    Edited put_in_force(std::vector<Rule> rules);

    RuleSetPtr current_;
    std::uint64_t last_id_ = 0;
};

// All rules as a file that load_text() reads.
std::string to_text(const RuleSet& rules);

}  // namespace fopd::lrs

// Whatever text somebody gives as a rule, a change of one, a file of them or a request: either a
// mistake that can be shown and stands in the text, or something that prints and reads back to the
// same. What is refused changes nothing.
//
//     build/fuzz/bin/fuzz_rule -max_len=4200 tests/fuzz/corpus/rule
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/ensure.h"
#include "core/utf8.h"
#include "lrs/classes/described_request.h"
#include "lrs/epoch_groups/rule_set.h"
#include "lrs/mclock/edit.h"
#include "lrs/mclock/rule.h"
#include "lrs/policies.h"
#include "tests/lrs/tbf/rule_edits.h"

using namespace fopd;
using namespace fopd::lrs;
using fopd::lrs::testing::RuleEdits;

namespace {

constexpr RuleEdits::Edit kNow{.now = Instant{1s}};

void check_mistake(const RuleMistake& mistake, std::string_view text) {
    ENSURE(mistake.column >= 1);
    ENSURE(mistake.column <= text.size() + 1);
    ENSURE(!mistake.wrong.empty());
    ENSURE(!mistake.right.empty());
    const std::string shown = to_string(mistake);
    ENSURE(core::is_utf8(shown));
    ENSURE(!core::has_control(shown));
}
void check_mistake(const RuleMistakes& mistakes, std::string_view text) {
    ENSURE(!mistakes.empty());
    for (const RuleMistake& each : mistakes) check_mistake(each, text);
}

void check_same(const Rule& rule, const Rule& again) {
    ENSURE(again.name == rule.name);
    ENSURE(again.expression == rule.expression);
    ENSURE(again.limits == rule.limits);
    ENSURE(again.classes_by == rule.classes_by);
    ENSURE(again.rank == rule.rank);
    ENSURE(again.text() == rule.text());
}

void check_rule(const Rule& rule) {
    const std::string text = rule.text();
    const auto again = parse_rule(text);
    // Quotes and default values that are said may make it longer than a rule may be.
    ENSURE(again.has_value() || text.size() > kRuleBytesMax);
    if (again) check_same(rule, *again);
    const auto same = parse_change(rule.name, rule);
    ENSURE(same.has_value());
    check_same(rule, *same);
}

void check_mclock_rule(const MclockRule& rule) {
    const std::string text = rule.text();
    const auto again = parse_mclock_rule(text);
    ENSURE(again.has_value() || text.size() > kRuleBytesMax);
    if (!again) return;
    ENSURE(again->name == rule.name);
    ENSURE(again->has_same_classes_as(rule));
    ENSURE(again->shares == rule.shares);
    ENSURE(again->class_count == rule.class_count);
    ENSURE(again->rank == rule.rank);
    ENSURE(again->text() == text);
    const auto same = parse_mclock_change(rule.name, rule);
    ENSURE(same.has_value() && same->text() == text);
}

void check_group_rule(const GroupRule& rule) {
    const std::string text = rule.text();
    const auto again = parse_group_rule(text);
    ENSURE(again.has_value() || text.size() > kRuleBytesMax);
    if (!again) return;
    ENSURE(again->name == rule.name);
    ENSURE(again->has_same_classes_as(rule));
    ENSURE(again->weight == rule.weight);
    ENSURE(again->rank == rule.rank);
    ENSURE(again->text() == text);
    const auto same = parse_group_change(rule.name, rule);
    ENSURE(same.has_value() && same->text() == text);
}

void check_edits(std::string_view text) {
    RuleEdits book;
    ENSURE(book.add("a job=a* rate=1/s", kNow).has_value());
    const RuleSetPtr before = book.current();
    if (const auto changed = book.change(text, kNow); !changed) {
        check_mistake(changed.error(), text);
        ENSURE(book.current() == before);
    }
    const RuleSetPtr changed = book.current();
    if (const auto loaded = book.load_text(text, kNow); !loaded) {
        check_mistake(loaded.error(), text);
        ENSURE(book.current() == changed);
        return;
    }
    ENSURE(book.current()->rules().back().name == kDefaultRule);
    ENSURE(book.current()->rules().size() <= kRulesMax + 1);
    for (const Rule& rule : book.current()->rules()) check_rule(rule);
}

void check_mclock_edits(std::string_view text) {
    const MclockSettings settings{.capacity = 1000, .rules = {"a job={a b} reservation=10/s"}};
    const auto rules = MclockRules::load(settings.rules);
    ENSURE(rules.has_value());
    using Verb = RuleEdit::Verb;
    for (const Verb verb : {Verb::kAdd, Verb::kChange, Verb::kDel, Verb::kLoad}) {
        const auto edited = edit_mclock(settings, *rules, {.verb = verb, .text = text});
        if (!edited) {
            check_mistake(edited.error(), text);
            continue;
        }
        const auto loaded = MclockRules::load(edited->rules, *rules);
        ENSURE(loaded.has_value());
        ENSURE(!overbooked(*edited, **loaded));
    }
}

void check_group_edits(std::string_view text) {
    using Verb = RuleEdit::Verb;
    for (const Verb verb : {Verb::kAdd, Verb::kChange, Verb::kDel, Verb::kLoad}) {
        EpochGroupsNode node(1);
        PolicySettings settings;
        settings.epoch_groups.rules = {"a job=a* weight=2"};
        const OrderedRulesPtr before = node.rules(settings, kNow.now);
        const auto wrong = node.edit(settings, {.verb = verb, .text = text}, kNow.now);
        if (wrong) {
            check_mistake(*wrong, text);
            ENSURE(node.rules(settings, kNow.now) == before);
            continue;
        }
        ENSURE(GroupRules::load(settings.epoch_groups.rules, 1).has_value());
        const OrderedRulesPtr after = node.rules(settings, kNow.now);
        ENSURE(after->count() <= kRulesMax + 1);
    }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
    const auto rule = parse_rule(text);
    if (rule) {
        check_rule(*rule);
    } else {
        check_mistake(rule.error(), text);
    }
    const auto described = DescribedRequest::parse(text);
    if (described) {
        const RequestAttributes& attributes = (*described)->attributes();
        if (rule) {
            const bool is_found =
                RuleIndex(std::vector<Rule>{*rule}).first_for(attributes).has_value();
            ENSURE(is_found == rule->matches(attributes));
        }
        RuleEdits book;
        ENSURE(book.current()->rule_for(attributes).name == kDefaultRule);
    } else {
        check_mistake(described.error(), text);
    }
    const auto mclock_rule = parse_mclock_rule(text);
    if (mclock_rule) {
        check_mclock_rule(*mclock_rule);
    } else {
        check_mistake(mclock_rule.error(), text);
    }
    const auto group_rule = parse_group_rule(text);
    if (group_rule) {
        check_group_rule(*group_rule);
    } else {
        check_mistake(group_rule.error(), text);
    }
    check_edits(text);
    check_mclock_edits(text);
    check_group_edits(text);
    return 0;
}

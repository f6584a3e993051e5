#include "lrs/policies.h"

#include <algorithm>
#include <array>

#include "lrs/classes/rule_mistakes.h"
#include "lrs/deadline.h"
#include "lrs/fifo.h"
#include "lrs/orr.h"
#include "lrs/trr.h"

namespace fopd::lrs {

namespace {

using Scope = PolicyEntry::Scope;
using ClientOrder = PolicyEntry::ClientOrder;

template <auto Part>
bool same(const PolicySettings& one, const PolicySettings& other) {
    return one.*Part == other.*Part;
}

template <auto Make, auto Part>
auto made(const PolicySettings& settings, const PolicyParts& parts) {
    return Make(settings.*Part, parts.seed);
}

// Policies with rules have a part of the same name in the settings, the node and the share.
template <auto Make, auto Part, auto Share>
auto made_with_rules(const PolicySettings& settings, const PolicyParts& parts) {
    return Make(settings.*Part, parts.share.*Share, parts.seed);
}

template <auto Share>
std::string class_by_rules(const RequestAttributes& request, const PolicySettings& /*settings*/,
                           const PolicyParts& parts) {
    return (parts.share.*Share).rules->rule_for(request).class_name(request);
}

template <auto Book>
RuleBook& book_of(PolicyNode& node) {
    return node.*Book;
}

template <auto Part, const auto& Grammar>
std::optional<RuleMistakes> put_rules(PolicySettings& settings, std::string_view file) {
    const auto rules = read_rules(file, Grammar);
    if (!rules) return rules.error();
    (settings.*Part).rules = texts_of(*rules, Grammar);
    return std::nullopt;
}

// The only code that knows every policy. To add a policy: write it, add its row here, and add its
// settings to PolicySettings and to the section.
constexpr std::array kPolicies{
    PolicyEntry{
        .name = "crr",
        .summary = "Clients, jobs, principals or users take turns.",
        .scope = Scope::kLocality,
        .client_order = ClientOrder::kKept,
        .make = &made<&make_crr, &PolicySettings::crr>,
        .is_same = &same<&PolicySettings::crr>,
        .class_of =
            [](const RequestAttributes& request, const PolicySettings& settings,
               const PolicyParts& /*parts*/) { return crr_class_name(request, settings.crr.by); },
    },
    PolicyEntry{
        .name = "deadline",
        .summary = "Another policy's order, but fops that have waited for too long run first.",
        .scope = Scope::kLocality,
        .client_order = ClientOrder::kMixed,  // kKept if the inner policy keeps it.
        .make =
            [](const PolicySettings& settings, const PolicyParts& parts) {
                const DeadlineSettings& own = settings.deadline;
                return make_deadline(own.policy->make(settings, parts), own.wait_max);
            },
        .is_same =
            [](const PolicySettings& one, const PolicySettings& other) {
                return one.deadline == other.deadline && one.deadline.policy->is_same(one, other);
            },
        .inner = [](const PolicySettings& settings) { return settings.deadline.policy; }},
    PolicyEntry{
        .name = "delay",
        .summary = "A fault for tests: some fops are delayed.",
        .scope = Scope::kLocality,
        .client_order = ClientOrder::kMixed,
        .make = &made<&make_delay, &PolicySettings::delay>,
        .is_same = &same<&PolicySettings::delay>,
    },
    PolicyEntry{
        .name = "epoch_groups",
        .summary = "All nodes of a cluster serve the same group of fops at a time.",
        .scope = Scope::kCluster,
        .client_order = ClientOrder::kMixed,
        .make = &made_with_rules<&make_epoch_groups, &PolicySettings::epoch_groups,
                                 &PolicyShare::epoch_groups>,
        .is_same = &same<&PolicySettings::epoch_groups>,
        .class_of = &class_by_rules<&PolicyShare::epoch_groups>,
        .share =
            [](PolicyNode& node, const PolicySettings& settings, Instant /*now*/) {
                return PolicyShare{.epoch_groups = node.epoch_groups.share(settings.epoch_groups)};
            },
        .rule_book = &book_of<&PolicyNode::epoch_groups>,
        .set_rules = &put_rules<&PolicySettings::epoch_groups, kGroupGrammar>,
    },
    PolicyEntry{.name = "fifo",
                .summary = "In the order of arrival.",
                .scope = Scope::kLocality,
                .client_order = ClientOrder::kKept,
                .make = [](const PolicySettings& /*settings*/,
                           const PolicyParts& /*parts*/) { return make_fifo(); },
                .is_same = [](const PolicySettings& /*one*/,
                              const PolicySettings& /*other*/) { return true; }},
    PolicyEntry{
        .name = "mclock",
        .summary = "Rules give each class a reservation, a weight and a limit.",
        .scope = Scope::kNode,
        .client_order = ClientOrder::kMixed,
        .make = &made_with_rules<&make_mclock, &PolicySettings::mclock, &PolicyShare::mclock>,
        .is_same = &same<&PolicySettings::mclock>,
        .class_of = &class_by_rules<&PolicyShare::mclock>,
        .share =
            [](PolicyNode& node, const PolicySettings& settings, Instant /*now*/) {
                return PolicyShare{.mclock = node.mclock.share(settings.mclock)};
            },
        .rule_book = &book_of<&PolicyNode::mclock>,
        .set_rules = &put_rules<&PolicySettings::mclock, kMclockGrammar>},
    PolicyEntry{
        .name = "orr",
        .summary = "Objects take turns, each in the order of its offsets.",
        .scope = Scope::kLocality,
        .client_order = ClientOrder::kMixed,
        .make = &made<&make_orr, &PolicySettings::orr>,
        .is_same = &same<&PolicySettings::orr>,
    },
    PolicyEntry{
        .name = "tbf",
        .summary = "Rules limit the rate of each class of fops.",
        .scope = Scope::kNode,
        .client_order = ClientOrder::kMixed,
        .make = &made_with_rules<&make_tbf, &PolicySettings::tbf, &PolicyShare::tbf>,
        .is_same = &same<&PolicySettings::tbf>,
        .class_of = &class_by_rules<&PolicyShare::tbf>,
        .share = [](PolicyNode& node, const PolicySettings& settings,
                    Instant now) { return PolicyShare{.tbf = node.tbf.share(settings.tbf, now)}; },
        .rule_book = &book_of<&PolicyNode::tbf>,
        .set_rules = &put_rules<&PolicySettings::tbf, kTbfGrammar>,
    },
    PolicyEntry{
        .name = "trr",
        .summary = "Devices take turns, each in the order of its objects and offsets.",
        .scope = Scope::kLocality,
        .client_order = ClientOrder::kMixed,
        .make = &made<&make_trr, &PolicySettings::trr>,
        .is_same = &same<&PolicySettings::trr>,
    },
};
static_assert(std::ranges::is_sorted(kPolicies, {}, &PolicyEntry::name));
static_assert(std::ranges::adjacent_find(kPolicies, {}, &PolicyEntry::name) == kPolicies.end(),
              "two policies share a name");

constexpr std::size_t kDefault = 0;
static_assert(kPolicies[kDefault].name == "crr");
// Its rules are shown and changed while the policy in use has no rules.
constexpr std::size_t kRulesByDefault = 7;
static_assert(kPolicies[kRulesByDefault].name == "tbf");

}  // namespace

std::span<const PolicyEntry> policies() {
    return kPolicies;
}

const PolicyEntry& default_policy() {
    return kPolicies[kDefault];
}

const PolicyEntry& PolicyChoice::decides() const {
    return policy->inner == nullptr ? *policy : *policy->inner(*this);
}

const PolicyEntry& PolicyChoice::with_rules() const {
    const PolicyEntry& entry = decides();
    if (entry.rule_book != nullptr) return entry;
    return kPolicies[kRulesByDefault];
}

PolicyShare PolicyChoice::share(PolicyNode& node, Instant now) const {
    const PolicyEntry& entry = decides();
    return entry.share == nullptr ? PolicyShare{} : entry.share(node, *this, now);
}

PolicyChoice PolicyChoice::for_localities() const {
    PolicyChoice choice = *this;
    choice.epoch_groups.rules.clear();
    choice.mclock.rules.clear();
    choice.tbf.rules.clear();
    return choice;
}

std::string PolicyChoice::class_of(const RequestAttributes& request,
                                   const PolicyParts& parts) const {
    const PolicyEntry& entry = decides();
    if (entry.class_of == nullptr) return std::string(kAllClasses);
    return entry.class_of(request, *this, parts);
}

}  // namespace fopd::lrs

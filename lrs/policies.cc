#include "lrs/policies.h"

#include <algorithm>
#include <array>

#include "lrs/deadline.h"
#include "lrs/fifo.h"
#include "lrs/orr.h"
#include "lrs/trr.h"

namespace fopd::lrs {

namespace {

using Scope = PolicyEntry::Scope;
using ClientOrder = PolicyEntry::ClientOrder;

// The only place that knows every policy. To add one: write it, add its row, and its settings to
// PolicySettings and to the section.
constexpr std::array kPolicies{
    PolicyEntry{.name = "crr",
                .summary = "Clients take turns.",
                .scope = Scope::kLocality,
                .client_order = ClientOrder::kKept,
                .make = [](const PolicySettings& settings,
                           std::uint64_t seed) { return make_crr(settings.crr, seed); }},
    PolicyEntry{.name = "deadline",
                .summary = "Another policy's order, until something has waited for too long.",
                .scope = Scope::kLocality,
                .client_order = ClientOrder::kMixed,
                .make =
                    [](const PolicySettings& settings, std::uint64_t seed) {
                        const DeadlineSettings& own = settings.deadline;
                        return make_deadline(own.policy->make(settings, seed), own.wait_max);
                    }},
    PolicyEntry{.name = "delay",
                .summary = "A fault to test with: some fops are late.",
                .scope = Scope::kLocality,
                .client_order = ClientOrder::kMixed,
                .make = [](const PolicySettings& settings,
                           std::uint64_t seed) { return make_delay(settings.delay, seed); }},
    PolicyEntry{.name = "fifo",
                .summary = "In the order of arrival.",
                .scope = Scope::kLocality,
                .client_order = ClientOrder::kKept,
                .make = [](const PolicySettings& /*settings*/,
                           std::uint64_t /*seed*/) { return make_fifo(); }},
    PolicyEntry{.name = "orr",
                .summary = "Objects take turns, each in the order of its offsets.",
                .scope = Scope::kLocality,
                .client_order = ClientOrder::kMixed,
                .make = [](const PolicySettings& settings,
                           std::uint64_t seed) { return make_orr(settings.orr, seed); }},
    PolicyEntry{.name = "trr",
                .summary = "Devices take turns, each in the order of its objects and offsets.",
                .scope = Scope::kLocality,
                .client_order = ClientOrder::kMixed,
                .make = [](const PolicySettings& settings,
                           std::uint64_t seed) { return make_trr(settings.trr, seed); }},
};
static_assert(std::ranges::is_sorted(kPolicies, {}, &PolicyEntry::name));
static_assert(std::ranges::adjacent_find(kPolicies, {}, &PolicyEntry::name) == kPolicies.end(),
              "two policies share a name");

constexpr std::size_t kDefault = 3;
static_assert(kPolicies[kDefault].name == "fifo");

}  // namespace

std::span<const PolicyEntry> policies() {
    return kPolicies;
}

const PolicyEntry& default_policy() {
    return kPolicies[kDefault];
}

}  // namespace fopd::lrs

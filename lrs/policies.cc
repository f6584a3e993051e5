#include "lrs/policies.h"

#include <algorithm>
#include <array>

#include "lrs/fifo.h"

namespace fopd::lrs {

namespace {

// The only place that knows every policy. To add one: write it, add its row.
constexpr std::array kPolicies{
    PolicyEntry{"fifo", "In the order of arrival.", &make_fifo},
};
static_assert(std::ranges::is_sorted(kPolicies, {}, &PolicyEntry::name));
static_assert(std::ranges::adjacent_find(kPolicies, {}, &PolicyEntry::name) == kPolicies.end(),
              "two policies share a name");

constexpr std::size_t kDefault = 0;
static_assert(kPolicies[kDefault].name == "fifo");

}  // namespace

std::span<const PolicyEntry> policies() {
    return kPolicies;
}

const PolicyEntry& default_policy() {
    return kPolicies[kDefault];
}

}  // namespace fopd::lrs

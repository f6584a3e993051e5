#pragma once

#include <cstddef>

#include "core/metrics.h"
#include "objects/stores.h"

namespace fopd::daemon {

// The use and the quotas of pools, and of at most kPrincipalsShownMax principals in each: those
// with a quota before others and by the part of it that they use, then by their use. From any
// thread.
inline constexpr std::size_t kPrincipalsShownMax = 100;
void collect_quotas(core::MetricSink& sink, const objects::StoreLayout& layout);

}  // namespace fopd::daemon

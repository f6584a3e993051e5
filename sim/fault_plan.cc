#include "sim/fault_plan.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace fopd::sim {

namespace {

constexpr std::uint64_t kKindCount = static_cast<std::uint64_t>(Fault::Kind::kRestart) + 1;

}  // namespace

const char* to_string(Fault::Kind kind) {
    switch (kind) {
        case Fault::Kind::kCrash: return "crash";
        case Fault::Kind::kStallLocality: return "stall_locality";
        case Fault::Kind::kStallNode: return "stall_node";
        case Fault::Kind::kReload: return "reload";
        case Fault::Kind::kBadReload: return "bad_reload";
        case Fault::Kind::kDrain: return "drain";
        case Fault::Kind::kRestart: return "restart";
    }
    return "unknown";
}

std::vector<Fault> draw_fault_plan(core::Random random, const FaultPlanOptions& options) {
    std::vector<Fault> plan;
    for (std::uint32_t i = 0; i < options.fault_count; ++i) {
        plan.push_back({.kind = static_cast<Fault::Kind>(random.below(kKindCount)),
                        .at = Instant{Duration{random.between(0, options.length.count())}},
                        .node = static_cast<std::uint32_t>(random.below(options.nodes)),
                        .locality = static_cast<std::uint32_t>(random.below(options.localities)),
                        .span = Duration{random.between(0, Duration(20s).count())}});
    }
    const auto all_of = [](const Fault& fault) {
        return std::tie(fault.at, fault.node, fault.locality, fault.kind, fault.span);
    };
    std::ranges::sort(plan, {}, all_of);  // Equal instants, too, in one order.
    return plan;
}

std::string describe(const Fault& fault) {
    char text[160];
    std::snprintf(text, sizeof text, "at %.6f s node %u locality %u: %s for %.6f s",
                  in_seconds(fault.at.time_since_epoch()), fault.node, fault.locality,
                  to_string(fault.kind), in_seconds(fault.span));
    return text;
}

}  // namespace fopd::sim

#include "sim/fault_plan.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

namespace fopd::sim {

namespace {

constexpr std::uint64_t count_up_to(Fault::Kind last) {
    return static_cast<std::uint64_t>(last) + 1;
}

static_assert(static_cast<std::uint32_t>(Fault::Moment::kStart) + 1 == Fault::kMoments);

void sort_by_time(std::vector<Fault>& plan) {
    const auto all_of = [](const Fault& fault) {
        return std::tie(fault.at, fault.node, fault.locality, fault.kind, fault.span, fault.client,
                        fault.peer, fault.moment, fault.is_done);
    };
    std::ranges::sort(plan, {}, all_of);  // Gives equal instants a fixed order, too.
}

}  // namespace

bool is_of_network(Fault::Kind kind) {
    return kind >= Fault::Kind::kDelay && kind <= Fault::Kind::kRefuseConnects;
}

const char* to_string(Fault::Kind kind) {
    switch (kind) {
        case Fault::Kind::kCrash: return "crash";
        case Fault::Kind::kStallLocality: return "stall_locality";
        case Fault::Kind::kStallNode: return "stall_node";
        case Fault::Kind::kReload: return "reload";
        case Fault::Kind::kBadReload: return "bad_reload";
        case Fault::Kind::kDrain: return "drain";
        case Fault::Kind::kRestart: return "restart";
        case Fault::Kind::kDelay: return "delay";
        case Fault::Kind::kStallLink: return "stall_link";
        case Fault::Kind::kLose: return "lose";
        case Fault::Kind::kLoseAtNode: return "lose_at_node";
        case Fault::Kind::kLoseAtClient: return "lose_at_client";
        case Fault::Kind::kPartition: return "partition";
        case Fault::Kind::kBlockToNode: return "block_to_node";
        case Fault::Kind::kBlockToClient: return "block_to_client";
        case Fault::Kind::kRefuseConnects: return "refuse_connects";
        case Fault::Kind::kCrashClient: return "crash_client";
        case Fault::Kind::kCrashAt: return "crash_at";
        case Fault::Kind::kClockJump: return "clock_jump";
    }
    return "unknown";
}

std::vector<Fault> draw_fault_plan(core::Random random, const FaultPlanOptions& options) {
    const std::uint64_t kinds =
        count_up_to(options.clients == 0 ? Fault::Kind::kRestart : Fault::Kind::kCrashClient);
    std::vector<Fault> plan;
    for (std::uint32_t i = 0; i < options.fault_count; ++i) {
        Fault fault{.kind = static_cast<Fault::Kind>(random.below(kinds)),
                    .at = Instant{Duration{random.between(0, options.length.count())}},
                    .node = static_cast<std::uint32_t>(random.below(options.nodes)),
                    .locality = static_cast<std::uint32_t>(random.below(options.localities)),
                    .span = Duration{random.between(0, Duration(20s).count())}};
        if (options.clients > 0) {
            // Some link faults last longer than a lease, and a third affects all clients of the
            // node.
            if (random.below(4) == 0) fault.span *= 4;
            const auto client = static_cast<std::uint32_t>(random.below(options.clients));
            const bool every = fault.kind != Fault::Kind::kCrashClient && random.below(3) == 0;
            fault.client = every ? Fault::kEveryClient : client;
        }
        if (options.peers && is_of_network(fault.kind) && random.below(2) == 0) {
            const auto others = static_cast<std::uint32_t>(random.below(options.nodes - 1));
            fault.peer = (fault.node + 1 + others) % options.nodes;
        }
        plan.push_back(fault);
    }
    sort_by_time(plan);
    return plan;
}

void add_epoch_faults(std::vector<Fault>& plan, core::Random random,
                      const FaultPlanOptions& options) {
    for (std::uint32_t i = 0; i < options.fault_count; ++i) {
        Fault fault{.kind = Fault::Kind::kCrashAt,
                    .at = Instant{Duration{random.between(0, options.length.count())}},
                    .node = static_cast<std::uint32_t>(random.below(options.nodes)),
                    .span = Duration{random.between(0, Duration(5s).count())}};
        if (random.below(3) == 0) {
            fault.kind = Fault::Kind::kClockJump;
            fault.span = Duration{random.between(-Duration(48h).count(), Duration(48h).count())};
        } else {
            fault.moment = static_cast<Fault::Moment>(random.below(Fault::kMoments));
            fault.is_done = random.below(2) == 0;
        }
        plan.push_back(fault);
    }
    sort_by_time(plan);
}

std::string describe(const Fault& fault) {
    char text[192];
    std::snprintf(text, sizeof text, "at %.6f s node %u locality %u %s %d: %s for %.6f s",
                  in_seconds(fault.at.time_since_epoch()), fault.node, fault.locality,
                  fault.peer ? "peer" : "client",
                  static_cast<int>(fault.peer.value_or(fault.client)), to_string(fault.kind),
                  in_seconds(fault.span));
    if (fault.kind != Fault::Kind::kCrashAt) return text;
    return std::string(text) + ", moment " + std::to_string(static_cast<int>(fault.moment)) +
           (fault.is_done ? " when it is done" : " before it is done");
}

}  // namespace fopd::sim

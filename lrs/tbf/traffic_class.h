#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "lrs/tbf/demand.h"
#include "lrs/tbf/tbf.h"

namespace fopd::lrs {

// A class whose limits are those of a cluster.
struct Tbf::ClusterClass {
    explicit ClusterClass(const ClassHash& of) : ids(of) {}

    const ClassHash
        ids;  // The ids of its limits at all nodes: `low` for operations, `high` for bytes.
    std::uint64_t queued_bytes = 0;
    // The requests and the bytes that had arrived when demands were counted last.
    std::uint64_t arrived = 0;
    std::uint64_t arrived_bytes = 0;
    SteadyDemand operations;
    SteadyDemand bytes;
    std::uint64_t settled_in = 0;  // The count of the epoch whose shares it has.
};

struct alignas(64) Tbf::TrafficClass : KnownClass, Tbf::LinePlace {
    TrafficClass(const ClassHash& of, const Rule& by, Bucket& from)
        : KnownClass(of), bucket(&from), rule(&by) {}

    Request& head() { return static_cast<Request&>(waiting.front()); }
    bool is_own() const { return bucket == rule->own_bucket.get(); }
    bool has_nothing() const { return queued == 0 && unmoved == 0; }
    bool is_throttled(Ticks now) const { return queued > 0 && at > now; }
    // How long it has been waiting for tokens.
    Ticks throttled_ticks(Ticks now) const {
        return queued == 0 ? 0 : std::max<Ticks>(0, std::min(at, now) - since);
    }

    // The members that each push and pop reads come first, in adjacent memory.
    core::IntrusiveList<PolicyPlace> waiting;
    Bucket* bucket;
    const Rule* rule;                       // Null: the rule was removed.
    std::unique_ptr<ClusterClass> cluster;  // Null: the limits are those of the node.
    std::uint32_t order = 0;                // The order of its entry in the heap; 0: no entry.
    std::uint64_t queued = 0;
    Ticks since = 0;  // When the first request became the first.
    Ticks at = 0;     // When the first request can be served.
    ClassTally tally;

    bool is_from_table = false;  // Whether the bucket is from the table.
    std::uint64_t unmoved = 0;   // Requests from before a change of rules, not moved yet.
    bool must_move = false;      // The unmoved requests may belong to another class.
    std::string name;
};

}  // namespace fopd::lrs

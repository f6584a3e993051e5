#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "lrs/classes/recent_rate.h"

namespace fopd::lrs {

// A policy's counters of a class. mclock also counts how many requests were served by the
// class's reservation, by its weight, and above a soft limit.
struct ClassTotals {
    std::uint64_t served = 0;
    std::uint64_t bytes = 0;
    Duration throttled{};  // Time in which requests waited and the class was held back.
    std::uint64_t as_reserved = 0;
    std::uint64_t by_weight = 0;
    std::uint64_t over_limit = 0;  // Served above a soft limit.

    void add(const ClassTotals& other) {
        served += other.served;
        bytes += other.bytes;
        throttled += other.throttled;
        as_reserved += other.as_reserved;
        by_weight += other.by_weight;
        over_limit += other.over_limit;
    }
    bool is_nothing() const { return served == 0 && bytes == 0 && throttled == Duration::zero(); }
};

// The counters of one class in a policy, from the class's first request on.
class ClassTally {
public:
    void add_request(std::uint64_t bytes, Instant now) {
        totals_.served += 1;
        totals_.bytes += bytes;
        recent_.add_request(bytes, now);
    }
    void add_throttled(Duration span) { totals_.throttled += span; }
    // Why a request was served; the request is counted by add_request(), too.
    void note_reserved() { ++totals_.as_reserved; }
    void note_by_weight() { ++totals_.by_weight; }
    void note_over_limit() { ++totals_.over_limit; }

    const ClassTotals& totals() const { return totals_; }
    // How long the class was held back, including `uncounted`, the part of the present wait that is
    // not in the totals. Never less than an earlier result, although a delay may turn out to end
    // earlier than estimated.
    Duration throttled_with(Duration uncounted) {
        told_throttled_ = std::max(told_throttled_, totals_.throttled + uncounted);
        return told_throttled_;
    }
    RecentRate::PerSecond per_second(Instant now) const { return recent_.per_second(now); }

    // The growth of the totals since the last call. `throttled_now` is held-back time that is not
    // in the totals yet, but will be.
    ClassTotals take_news(Duration throttled_now);

private:
    ClassTotals totals_;
    RecentRate recent_;
    ClassTotals told_;
    Duration told_throttled_{};
};

// The reservation, weight and limit of a class. Rates are requests per second; a request with data
// counts as more than one.
struct ClassShares {
    std::optional<std::uint64_t> reservation{};
    std::uint32_t weight = 1;
    std::optional<std::uint64_t> limit{};
    bool is_soft = false;  // Whether the limit is soft.
};

// The turns of a class in a policy by which all nodes agree on the turns.
struct ClassTurns {
    std::uint32_t weight = 1;
    std::uint64_t taken = 0;  // The epochs that were a turn of this class.
    // The waiting requests of the class at all nodes when the epoch began. Nothing: the class is
    // not among those with the next turns, for which this is known.
    std::optional<std::uint64_t> queued_in_all{};

    // Adds the figures of another locality, which counts the same epochs.
    void add(const ClassTurns& other);
};

// The node's part of a limit that all nodes of its cluster share.
struct ClassInCluster {
    double share = 0;
    bool is_cut_off = false;  // The node is cut off from the other nodes.
    bool differs = false;     // Another node has a different text of the rule.

    // Adds the figures of another locality.
    void add(const ClassInCluster& other) {
        share = std::max(share, other.share);
        is_cut_off = is_cut_off || other.is_cut_off;
        differs = differs || other.differs;
    }
};

// The class that is shown for a policy without classes.
inline constexpr std::string_view kAllClasses = "all";
// The row that sums up the classes that did not fit into a list.
inline constexpr std::string_view kOtherClasses = "other";

// A policy's report on a class, passed to a visitor. Valid during the visitor's call only.
struct ClassView {
    std::string_view name;            // The same in all localities.
    std::string_view rule{};          // The rule that made the class, if any.
    std::uint32_t sort_position = 0;  // Classes with a lower one come first in lists.
    std::uint64_t queued = 0;
    bool is_throttled = false;  // Requests wait and are held back.
    Duration throttled_now{};   // Not in the tally yet.
    Instant oldest = kNever;    // Arrival of the oldest waiting request.
    ClassTally& tally;
    std::optional<ClassShares> shares{};      // Only from a policy of shares.
    std::optional<ClassTurns> turns{};        // Only from a policy of agreed turns.
    std::optional<ClassInCluster> cluster{};  // Only if its limits are those of a cluster.
};
using ClassVisitor = std::function<void(const ClassView&)>;

// The figures of a class, in one locality or in all.
struct ClassFigures {
    std::string name;
    std::uint32_t sort_position = 0;
    std::uint64_t queued = 0;
    std::uint64_t served = 0;
    std::uint64_t bytes = 0;
    double operations_per_second = 0;  // Recent rate.
    double bytes_per_second = 0;
    bool is_throttled = false;
    Duration throttled{};  // Summed over localities: two that hold the class back for 1 s make 2 s.
    Duration oldest{};     // How long the oldest request has waited.
    std::uint64_t as_reserved = 0;  // This and the next two: see ClassTotals.
    std::uint64_t by_weight = 0;
    std::uint64_t over_limit = 0;
    std::optional<ClassShares> shares{};
    std::optional<ClassTurns> turns{};
    std::optional<ClassInCluster> cluster{};

    // Raises each total to the same total of `totals`, if that is higher.
    void raise_to(const ClassTotals& totals);

    void add(const ClassFigures& other);
};
ClassFigures figures_of(const ClassView& of, Instant now);

// Merges the figures of all localities by sort position and name. Of more than `count_max` classes
// it keeps those with the most queued requests, then the longest throttled, then the most served;
// the others are summed up in one more class, "other".
std::vector<ClassFigures> together(std::vector<ClassFigures> parts, std::size_t count_max);

// The present state of a class.
struct ClassNow {
    std::uint64_t queued = 0;
    Duration oldest{};                 // The wait of the oldest waiting request.
    double operations_per_second = 0;  // Recent rate.
    double bytes_per_second = 0;
    std::optional<ClassInCluster> cluster{};

    // Adds the figures of another locality.
    void add(const ClassNow& other);
};

// The growth of a class's figures since the last query.
struct ClassNews {
    std::string name;
    std::string rule{};  // The rule that made the class, if any.
    ClassTotals added;
    ClassNow now;
};

}  // namespace fopd::lrs

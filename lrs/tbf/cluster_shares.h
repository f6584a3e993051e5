#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "lrs/classes/bucket.h"
#include "lrs/classes/keyed_hash.h"
#include "lrs/tbf/cluster_part.h"

namespace fopd::lrs {

// The state of a node in its cluster that all its localities share, besides their buckets.
struct ClusterNode {
    HashKey key{};                 // The same at all nodes.
    std::uint32_t localities = 1;  // The localities of the node that have the policy.
    // The nodes of the cluster, as far as they are known before the first epoch.
    std::uint32_t members = 1;

    // The newest epoch that has begun at a locality, and the one before it.
    std::atomic<eh::EpochNumber> newest = eh::kFirstEpoch;
    std::atomic<eh::EpochNumber> previous = eh::kFirstEpoch;
};

// A limit of the cluster, in operations or in bytes: its id, which is the same at all nodes, and
// the state of the node's share of it.
struct ClusterMeter {
    std::uint64_t id;
    Meter& meter;
    ShareCell& share;
    Ticks depth;
};

// Divides the limits of the cluster among its nodes (docs/decisions/0065-limits-of-a-cluster.md).
// Each locality has one. The locality contributes the demands of its classes to each epoch, and
// adds the part of each rate that it gets for its demand to the share of its node. Pure.
class ClusterShares {
public:
    explicit ClusterShares(std::shared_ptr<ClusterNode> node);

    const ClusterNode& node() const { return *node_; }
    // The share of a node that is cut off from the others. Nothing: 1 divided by the number of
    // nodes.
    void set_cut_off(std::optional<Share> cut_off) { cut_off_ = cut_off; }

    // Writes the contribution to the next epoch. Changes the order of `demands`, which have
    // different ids. `moved` is written into ClusterPart::moved.
    void write(std::span<std::byte> room, std::vector<ClusterDemand>& demands, std::uint64_t moved);
    // The part of the rate by which shares move if a demand changes by `change`, in parts of
    // kWholeDemand. Less than `change` if the demands of all nodes together exceed the rate.
    std::uint64_t part_of_rate(std::uint64_t id, std::uint64_t change) const;
    void begin(eh::EpochNumber epoch, const EpochPartData& data, Ticks now);
    // The node is cut off from the others.
    void lose();

    // The share of the rate that the node has now.
    Share usable(const ShareCell& share, Ticks now) const;
    // The share that the node would have after settle().
    Share share_of(std::uint64_t id, const ShareCell& share, Ticks now) const;
    // Whether the node takes part in the present epoch.
    bool is_in(Ticks now) const;
    // Gives the limit its share of the present epoch, and adapts its meter. Called once in an epoch
    // for each limit that is in use.
    void settle(const ClusterMeter& of, Ticks now);

    // The number of epochs that have begun here. When it changes, shares may have changed.
    std::uint64_t count() const { return count_; }
    // Whether any node had a demand for a limit of the cluster in the present epoch.
    bool has_demand() const { return has_demand_; }
    // Whether a considerable part of a rate moves to other nodes. These nodes can use it only when
    // the next epoch has begun.
    bool is_moving() const { return is_moving_; }
    // Whether another node has a different text of the limit's rule.
    bool differs(std::uint64_t id) const;
    bool keys_differ() const { return keys_differ_; }
    std::uint64_t nodes() const { return nodes_; }

    // The most limits that are remembered.
    static constexpr std::size_t kKnownMax = 16384;
    static constexpr std::uint64_t kAllIds = ~std::uint64_t{0};

private:
    // A limit for which a node had a demand.
    struct Known {
        // The share of a node without a demand, in this epoch and in the epoch before.
        Share base = 0;
        Share base_before = 0;
        std::uint64_t demand = 0;      // The sum of the demands of all nodes.
        std::uint64_t changed_in = 0;  // The count of the epoch that changed `base`.
        bool is_absent = false;        // No node has a demand any more; all have equal shares.
        bool differs = false;
        Ticks changed_at = 0;  // When the share of any node changed last.
    };
    // The demand for a limit that this locality has contributed.
    struct Written {
        std::uint64_t id = 0;
        std::uint64_t demand = 0;
        // The share that the demand gains in the present epoch; 0 after take_gain().
        Share gain = 0;
    };

    void note_newest(eh::EpochNumber epoch);
    void learn(const ClusterPart& part, Ticks now);
    void note_gains(const ClusterPart& part);
    void forget();
    Share cut_off() const;
    Share limited(Share last) const;
    Share base_now(std::uint64_t id) const;
    Share base_before(std::uint64_t id) const;
    bool is_covered(std::uint64_t id) const { return !is_full_ || id - first_id_ <= last_index_; }
    void note_covered(const ClusterPart& part);
    Share take_gain(std::uint64_t id);

    const std::shared_ptr<ClusterNode> node_;
    std::optional<Share> cut_off_;

    eh::EpochNumber epoch_ = eh::kFirstEpoch;
    eh::EpochNumber before_ = eh::kFirstEpoch;  // The epoch before it.
    std::uint64_t count_ = 0;
    bool has_share_ = false;  // The locality contributed to the present epoch.
    // It also contributed to the epoch before, and missed none between them.
    bool goes_on_ = false;
    bool was_cut_off_ = true;  // The node was cut off when the present epoch began.
    Ticks expires_ = 0;
    std::uint64_t nodes_ = 0;
    std::uint64_t nodes_before_ = 0;
    bool has_demand_ = false;
    bool is_moving_ = false;
    bool keys_differ_ = false;

    // An epoch has demands for a range of ids only, if there are too many. The range of the present
    // epoch, and the first id of the next epoch.
    bool is_full_ = false;
    std::uint64_t first_id_ = 0;
    std::uint64_t last_index_ = 0;
    std::uint64_t next_first_id_ = 0;

    bool has_written_ = false;
    eh::EpochNumber written_basis_ = eh::kFirstEpoch;
    std::vector<Written> written_;  // By id.

    std::unordered_map<std::uint64_t, Known> known_;
    // The number of ids that no epoch has covered yet. A limit with such an id may be in use
    // although it is not in known_.
    std::uint64_t unheard_ = 0;
    bool had_unheard_ = false;  // unheard_ was above 0 in the epoch before.
    // The shares of limits that are not in known_ have not changed since then.
    Ticks known_since_ = 0;
};

}  // namespace fopd::lrs

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

// A node as a part of its cluster: what its localities share, besides their buckets.
struct ClusterNode {
    HashKey key{};                 // The same at all nodes.
    std::uint32_t localities = 1;  // How many have the policy.
    std::uint32_t members = 1;     // Nodes of the cluster, as far as known before the first epoch.

    // The newest epoch that has begun at a locality, and the one before it.
    std::atomic<eh::EpochNumber> newest = eh::kFirstEpoch;
    std::atomic<eh::EpochNumber> previous = eh::kFirstEpoch;
};

// A limit of a cluster in one unit: its id at all nodes, and the node's part of it.
struct ClusterMeter {
    std::uint64_t id;
    Meter& meter;
    ShareCell& share;
    Ticks depth;
};

// The shares of the cluster's limits that a locality's node has, as far as the locality says so
// (docs/decisions/0065-limits-of-a-cluster.md): it contributes what its classes want, and adds the
// part of each rate that it gets for that to the node's share. Pure.
class ClusterShares {
public:
    explicit ClusterShares(std::shared_ptr<ClusterNode> node);

    const ClusterNode& node() const { return *node_; }
    // Nothing: 1 divided by the number of nodes.
    void set_cut_off(std::optional<Share> cut_off) { cut_off_ = cut_off; }

    // Writes the contribution to the next epoch. Changes the order of `demands`, which have
    // different ids; `moved` as in the part.
    void write(std::span<std::byte> room, std::vector<ClusterDemand>& demands, std::uint64_t moved);
    // The part of the rate that is `change` in a demand for it, in parts of kWholeDemand.
    std::uint64_t part_of_rate(std::uint64_t id, std::uint64_t change) const;
    void begin(eh::EpochNumber epoch, const EpochPartData& data, Ticks now);
    // The node is cut off from the others.
    void lose();

    // The share of the rate that the node has now.
    Share usable(const ShareCell& share, Ticks now) const;
    // The share that it would have if it was settled now.
    Share share_of(std::uint64_t id, const ShareCell& share, Ticks now) const;
    // Whether the node takes part in the present epoch.
    bool is_in(Ticks now) const;
    // Gives the limit the share of the present epoch, and its meter the tokens for that. Once in
    // an epoch for each limit that is used.
    void settle(const ClusterMeter& of, Ticks now);

    // Counts the epochs that have begun here; another one has other shares.
    std::uint64_t count() const { return count_; }
    // Whether any node wanted something of a limit when it contributed to the present epoch.
    bool has_demand() const { return has_demand_; }
    // Whether a considerable part of a rate goes to other nodes, of which they can use no more than
    // before until another epoch has begun.
    bool is_moving() const { return is_moving_; }
    // Whether the rule reads otherwise at another node.
    bool differs(std::uint64_t id) const;
    bool keys_differ() const { return keys_differ_; }
    std::uint64_t nodes() const { return nodes_; }

    // How many limits are remembered.
    static constexpr std::size_t kKnownMax = 16384;
    static constexpr std::uint64_t kAllIds = ~std::uint64_t{0};

private:
    // A limit of which some node wanted something.
    struct Known {
        // The share of a node that wanted nothing of the limit, in this epoch and in the one
        // before.
        Share base = 0;
        Share base_before = 0;
        std::uint64_t demand = 0;      // The sum of the demands of all nodes.
        std::uint64_t changed_in = 0;  // The count of the epoch that changed `base`.
        bool is_absent = false;  // No node wants anything of it any more; all have equal shares.
        bool differs = false;
        Ticks changed_at = 0;  // When the share of a node changed last.
    };
    // What this node has written about a limit into its contribution.
    struct Written {
        std::uint64_t id = 0;
        std::uint64_t demand = 0;
        Share gain = 0;  // The share that it gains in the present epoch; 0 once it was taken.
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
    bool has_share_ = false;   // The locality contributed to the present epoch,
    bool goes_on_ = false;     // and to the one before it, with nothing between them.
    bool was_cut_off_ = true;  // When the present epoch began.
    Ticks expires_ = 0;
    std::uint64_t nodes_ = 0;
    std::uint64_t nodes_before_ = 0;
    bool has_demand_ = false;
    bool is_moving_ = false;
    bool keys_differ_ = false;

    // The ids that the present epoch says something about, and where those of the next one begin.
    bool is_full_ = false;
    std::uint64_t first_id_ = 0;
    std::uint64_t last_index_ = 0;
    std::uint64_t next_first_id_ = 0;

    bool has_written_ = false;
    eh::EpochNumber written_basis_ = eh::kFirstEpoch;
    std::vector<Written> written_;  // By id.

    std::unordered_map<std::uint64_t, Known> known_;
    // Ids of which no epoch has said anything yet: any limit may be in use that is not known.
    std::uint64_t unheard_ = 0;
    bool had_unheard_ = false;  // In the epoch before.
    Ticks known_since_ = 0;     // Limits that are not known have been as they are since then.
};

}  // namespace fopd::lrs

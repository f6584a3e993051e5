#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/time.h"
#include "lrs/classes/bucket_table.h"
#include "lrs/policy.h"
#include "lrs/rule_book.h"
#include "lrs/tbf/cluster_shares.h"
#include "lrs/tbf/rule_set.h"
#include "lrs/tbf/settings.h"

namespace fopd::lrs {

// The shared state of the policies of a node's localities.
struct TbfShare {
    std::shared_ptr<BucketTable> buckets{};
    RuleSetPtr rules{};
    std::shared_ptr<ClusterNode> cluster{};

    friend bool operator==(const TbfShare&, const TbfShare&) = default;
};

// Creates the policy of a locality. Without a share it has rules and buckets of its own, with a
// hash key made from the seed. REQUIRES: the settings were checked.
std::unique_ptr<Policy> make_tbf(const TbfSettings& settings, const TbfShare& share,
                                 std::uint64_t seed);

// The facts about a node and its cluster that limits of the cluster depend on.
struct ClusterFacts {
    // The key of the ids of limits, which is the same at all nodes. Nothing: the node has a key of
    // its own.
    std::optional<HashKey> key{};
    std::uint32_t localities = 1;
    std::uint32_t members = 1;  // Nodes of the cluster.

    friend bool operator==(const ClusterFacts&, const ClusterFacts&) = default;
};

// Creates the shared state, and updates it to the settings. Used by one thread.
class TbfNode final : public RuleBook {
public:
    // The versions of rules are higher than `version`.
    explicit TbfNode(std::uint64_t seed, std::uint64_t version = 0)
        : seed_(seed), revisions_(version + 1) {}

    // The caller must get the shared state again if the facts have changed.
    void set_facts(const ClusterFacts& facts);
    TbfShare share(const TbfSettings& settings, Instant now);
    // Unchanged rules keep their classes and buckets. REQUIRES: the settings were checked.
    const RuleSetPtr& revision(const TbfSettings& settings, Instant now);

    OrderedRulesPtr rules(const PolicySettings& settings, Instant now) override;
    std::optional<RuleMistakes> edit(PolicySettings& settings, const RuleEdit& edit,
                                     Instant now) override;

private:
    const std::uint64_t seed_;
    std::shared_ptr<BucketTable> buckets_;  // Made on first use.
    ClusterFacts facts_;
    std::shared_ptr<ClusterNode> cluster_;  // Made on first use, and after other facts.
    RuleRevisions revisions_;
    TbfSettings settings_{};
};

}  // namespace fopd::lrs

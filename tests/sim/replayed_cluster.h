#pragma once

#include "sim/cluster.h"
#include "tests/replay.h"

namespace fopd::sim::testing {

// The cluster of a test: its failures say how to have them again.
class ReplayedCluster : fopd::testing::Replay, public Cluster {
public:
    using Replay::Seed;

    ReplayedCluster(std::uint64_t seed, ClusterOptions options, Seed whose = Seed::kOfTest)
        : Replay(seed, whose), Cluster(seed, options) {}
};

}  // namespace fopd::sim::testing

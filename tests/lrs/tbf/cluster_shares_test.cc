// Goal: the shares of a limit that the nodes of a cluster use never make more than the rate, while
// some are in one epoch and some in the next, and whoever leaves and comes back.
// Method: nodes without requests in epochs that a drawn one of them begins next; the shares in use
// are added up after each step.

#include "lrs/tbf/cluster_shares.h"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/slowness.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

constexpr Ticks kDepth = kTicksPerSecond;
constexpr Instant kSharesStart{1000s};

using Bytes = std::array<std::byte, sizeof(ClusterPart)>;

// A node with its localities, and a bucket for each limit.
struct SharingNode {
    explicit SharingNode(std::uint32_t localities, std::uint32_t members) {
        facts->localities = localities;
        facts->members = members;
        for (std::uint32_t i = 0; i < localities; ++i)
            parts.push_back(std::make_unique<ClusterShares>(facts));
    }

    // The largest share with which one of its localities serves requests now.
    Share usable(std::uint64_t id, Ticks now) {
        Share most = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const auto settled = settled_in.find({i, id});
            const bool is_in_use =
                settled != settled_in.end() && settled->second == parts[i]->count();
            if (is_in_use)
                most = std::max(most, parts[i]->usable(buckets[id].operations_share, now));
        }
        return most;
    }
    void settle(std::size_t locality, std::uint64_t id, Ticks now) {
        Bucket& bucket = buckets[id];
        parts[locality]->settle({.id = id,
                                 .meter = bucket.operations,
                                 .share = bucket.operations_share,
                                 .depth = kDepth},
                                now);
        settled_in[{locality, id}] = parts[locality]->count();
    }

    std::shared_ptr<ClusterNode> facts = std::make_shared<ClusterNode>();
    std::vector<std::unique_ptr<ClusterShares>> parts;
    std::map<std::uint64_t, Bucket> buckets;
    // A locality uses no limit that it has not settled since its last epoch began.
    std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> settled_in;
    bool is_in = false;  // In epochs, or it was left out.
    // Limits that an epoch has divided since it was cut off last. Of others it has what it kept.
    std::set<std::uint64_t> divided;
};

// What one locality has contributed, and the epoch that has begun, but not here yet.
struct Pending {
    std::size_t node;
    std::size_t locality;
};

class Cluster {
public:
    explicit Cluster(std::uint64_t seed) : random(seed) {
        const std::size_t count = 2 + random.below(5);
        ids = 1 + random.below(3) * 50;
        for (std::size_t i = 0; i < count; ++i) {
            nodes.push_back(
                std::make_unique<SharingNode>(static_cast<std::uint32_t>(1 + random.below(3)),
                                              static_cast<std::uint32_t>(count)));
        }
    }

    // All that take part contribute; then each begins the epoch when its turn is drawn.
    void run_epoch() {
        now += 100ms;
        std::vector<Pending> waiting;
        std::optional<Bytes> result;
        std::uint32_t filled = 0;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const bool takes_part = nodes[i]->is_in || random.below(3) == 0;
            if (!takes_part) continue;
            for (std::size_t l = 0; l < nodes[i]->parts.size(); ++l) {
                const Bytes said = write(*nodes[i], l);
                if (result) {
                    kTbfPart.combine(*result, *result, said);
                } else {
                    result = said;
                }
                ++filled;
                waiting.push_back({.node = i, .locality = l});
            }
        }
        if (!result) return;
        epoch += 1 + static_cast<eh::EpochNumber>(random.below(2));
        while (!waiting.empty()) {
            const std::size_t at = random.below(waiting.size());
            const Pending next = waiting[at];
            waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
            begin(next, *result, filled);
            check();
        }
        const ClusterPart part = ClusterPart::read(*result);
        for (const auto& node : nodes) {
            node->is_in = node->facts->newest.load() == epoch;
            for (std::uint64_t id = 1; node->is_in && id <= ids; ++id)
                if (part.covers(hash(id))) node->divided.insert(hash(id));
        }
        // Somebody is cut off, and knows it before anybody begins two more epochs.
        if (random.below(10) == 0) {
            SharingNode& gone = *nodes[random.below(nodes.size())];
            for (const auto& each : gone.parts) each->lose();
            gone.is_in = false;
            gone.divided.clear();
        }
        use_some();
    }

    std::size_t settled_count = 0;
    std::size_t whole_count = 0;  // How often nearly the whole rate was in use.

private:
    Bytes write(SharingNode& node, std::size_t locality) {
        std::vector<ClusterDemand> demands;
        for (std::uint64_t id = 1; id <= ids; ++id) {
            if (random.below(3) > 0) continue;
            demands.push_back({.id = hash(id),
                               .demand = 1 + random.below(3 * kWholeDemand),
                               .terms_low = 1,
                               .terms_high = 1});
            wanted[{&node, locality}].push_back(hash(id));
        }
        Bytes bytes{};
        node.parts[locality]->write(bytes, demands, 0);
        return bytes;
    }
    static std::uint64_t hash(std::uint64_t id) { return id * 0x9e37'79b9'7f4a'7c15; }

    void begin(const Pending& at, const Bytes& result, std::uint32_t filled) {
        SharingNode& node = *nodes[at.node];
        node.parts[at.locality]->begin(
            epoch, {.filled = filled, .bytes = result, .expires_at = now + 10s}, ticks_at(now));
        for (const std::uint64_t id : wanted[{&node, at.locality}]) settle(node, at.locality, id);
        wanted[{&node, at.locality}].clear();
    }
    // Classes get requests where they have had none.
    void use_some() {
        for (int i = 0; i < 20; ++i) {
            SharingNode& node = *nodes[random.below(nodes.size())];
            if (!node.is_in) continue;
            settle(node, random.below(node.parts.size()), hash(1 + random.below(ids)));
            check();
        }
    }
    void settle(SharingNode& node, std::size_t locality, std::uint64_t id) {
        ++settled_count;
        node.settle(locality, id, ticks_at(now));
    }

    void check() {
        for (std::uint64_t number = 1; number <= ids; ++number) {
            const std::uint64_t id = hash(number);
            std::uint64_t sum = 0;
            for (const auto& node : nodes) {
                const Share share = node->usable(id, ticks_at(now));
                if (node->divided.contains(id)) {
                    sum += share;
                } else if (share > kWholeShare / nodes.size()) {
                    FAIL("a node that was cut off has " << share);
                }
            }
            if (sum > kWholeShare) FAIL("the shares make " << sum);
            whole_count += sum > kWholeShare / 10 * 9 ? 1U : 0U;
        }
    }

    core::Random random;
    std::uint64_t ids = 0;
    Instant now = kSharesStart;
    eh::EpochNumber epoch = 0;
    std::vector<std::unique_ptr<SharingNode>> nodes;
    std::map<std::pair<SharingNode*, std::size_t>, std::vector<std::uint64_t>> wanted;
};

// Two nodes, of which one has two localities, in steps that the test says.
Bytes contribution(ClusterShares& from, std::uint64_t id, std::uint64_t demand) {
    std::vector<ClusterDemand> demands{
        {.id = id, .demand = demand, .terms_low = 1, .terms_high = 1}};
    if (demand == 0) demands.clear();
    Bytes bytes{};
    from.write(bytes, demands, 0);
    return bytes;
}

}  // namespace

TEST_CASE("lrs cluster shares: they never make more than the rate, in whatever order epochs begin",
          "[lrs]") {
    std::size_t whole = 0;
    constexpr std::uint64_t kSeeds = fopd::testing::few_of(60);
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        CAPTURE(seed);
        Cluster cluster(seed);
        for (int i = 0; i < 40; ++i) cluster.run_epoch();
        CHECK(cluster.settled_count > 0);
        whole += cluster.whole_count;
    }
    CHECK(whole > 15 * kSeeds);
}

TEST_CASE("lrs cluster shares: what a locality had that hangs is gone, and stays gone", "[lrs]") {
    constexpr std::uint64_t kId = 5;
    SharingNode node(2, 1);
    const auto begin = [&](std::size_t locality, eh::EpochNumber epoch, const Bytes& result) {
        node.parts[locality]->begin(
            epoch, {.filled = 1, .bytes = result, .expires_at = kSharesStart + 100s},
            ticks_at(kSharesStart));
        node.settle(locality, kId, ticks_at(kSharesStart));
    };
    const auto share = [&](std::size_t locality) {
        return node.parts[locality]->usable(node.buckets[kId].operations_share,
                                            ticks_at(kSharesStart));
    };
    // Three epochs in which each wants half; another node wants as much as both.
    for (eh::EpochNumber epoch = 1; epoch <= 3; ++epoch) {
        const Bytes one = contribution(*node.parts[0], kId, kWholeDemand / 2);
        const Bytes other = contribution(*node.parts[1], kId, kWholeDemand / 2);
        Bytes result{};
        kTbfPart.combine(result, one, other);
        ClusterPart all = ClusterPart::read(result);
        all.demands.front().demand *= 2;
        all.write(result);
        begin(0, epoch, result);
        begin(1, epoch, result);
    }
    CHECK(share(0) == Approx(kWholeShare / 2).margin(2));

    // The second one says something, but hangs and hears nothing.
    for (eh::EpochNumber epoch = 4; epoch <= 6; ++epoch) {
        Bytes said = contribution(*node.parts[0], kId, kWholeDemand / 2);
        ClusterPart all = ClusterPart::read(said);
        all.demands.front().demand = 2 * kWholeDemand;
        all.write(said);
        begin(0, epoch, said);
    }
    CHECK(share(0) == Approx(kWholeShare / 4).margin(2));
    // It is told of the fourth one late, and of none of the others.
    const Bytes late = contribution(*node.parts[1], kId, kWholeDemand / 2);
    begin(1, 4, late);
    CHECK(share(0) == Approx(kWholeShare / 4).margin(2));
    CHECK_FALSE(node.parts[1]->is_in(ticks_at(kSharesStart)));
    CHECK(node.parts[0]->is_in(ticks_at(kSharesStart)));
}

TEST_CASE("lrs cluster shares: whatever a peer says, a node goes on", "[lrs]") {
    constexpr std::uint64_t kId = 5;
    core::Random random(5);
    const Ticks now = ticks_at(kSharesStart);
    for (int i = 0; i < 500; ++i) {
        SharingNode node(1, 4);
        Bytes said{};
        for (eh::EpochNumber epoch = 1; epoch <= 3; ++epoch) {
            said = contribution(*node.parts[0], kId, kWholeDemand);
            ClusterPart forged = ClusterPart::read(said);
            // All are beyond 2^44 nodes, of which a share is nothing.
            forged.nodes = ~std::uint64_t{0} - random.below(3);
            if (i % 2 == 0) forged.basis = static_cast<eh::EpochNumber>(random.next() >> 1U);
            if (i % 3 == 0) forged.demands.front().demand = random.next();
            if (i % 5 == 0) forged.count = static_cast<std::uint32_t>(random.next());
            forged.write(said);
            node.parts[0]->begin(
                epoch, {.filled = 1, .bytes = said, .expires_at = kSharesStart + 2s}, now);
            node.settle(0, kId, now);
        }
        // Cut off, it keeps something.
        CHECK(node.usable(kId, ticks_at(kSharesStart + 3s)) > 0);
    }
}

TEST_CASE("lrs cluster shares: the last of all numbers cuts no node off for ever", "[lrs]") {
    constexpr std::uint64_t kId = 5;
    SharingNode node(1, 4);
    const Ticks now = ticks_at(kSharesStart);
    const auto begin = [&](eh::EpochNumber epoch) {
        const Bytes said = contribution(*node.parts[0], kId, 3 * kWholeDemand);
        node.parts[0]->begin(epoch, {.filled = 1, .bytes = said, .expires_at = kSharesStart + 2s},
                             now);
        node.settle(0, kId, now);
    };
    begin(1);
    // Of a peer that lies. The node loses its membership, and joins again.
    begin(eh::EpochNumber{1} << 62);
    node.parts[0]->lose();
    for (eh::EpochNumber epoch = 2; epoch <= 5; ++epoch) begin(epoch);
    CHECK(node.parts[0]->is_in(now));
    CHECK(node.usable(kId, now) == kWholeShare);
}

TEST_CASE("lrs cluster shares: a share ends when others may have it", "[lrs]") {
    constexpr std::uint64_t kId = 5;
    SharingNode node(1, 4);
    const Ticks now = ticks_at(kSharesStart);
    for (eh::EpochNumber epoch = 1; epoch <= 3; ++epoch) {
        const Bytes said = contribution(*node.parts[0], kId, 3 * kWholeDemand);
        node.parts[0]->begin(epoch, {.filled = 1, .bytes = said, .expires_at = kSharesStart + 2s},
                             now);
        node.settle(0, kId, now);
    }
    CHECK(node.usable(kId, ticks_at(kSharesStart + 1999ms)) == kWholeShare);
    node.parts[0]->set_cut_off(kWholeShare / 10);
    CHECK(node.usable(kId, ticks_at(kSharesStart + 2s)) == kWholeShare / 10);
    // The next epoch proves that the node was counted.
    const Bytes said = contribution(*node.parts[0], kId, 3 * kWholeDemand);
    node.parts[0]->begin(4, {.filled = 1, .bytes = said, .expires_at = kSharesStart + 9s},
                         ticks_at(kSharesStart + 3s));
    node.settle(0, kId, ticks_at(kSharesStart + 3s));
    CHECK(node.usable(kId, ticks_at(kSharesStart + 3s)) == kWholeShare);
}

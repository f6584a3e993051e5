// Goal: what happens to names when many want one, when a disk is missing, or is an older one.

#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/store/names_stage.h"

namespace fopd::store::names_testing {
namespace {

// A node whose disks and names outlive it.
struct Stage : fopd::testing::Replay {
    explicit Stage(std::uint64_t seed) : Replay(seed), plan{.seed = seed}, world(seed) {}

    std::unique_ptr<Node> boot(std::vector<unsigned> disks) {
        auto node = std::make_unique<Node>(world, *remains, plan, core::Random(plan.seed));
        node->finish(node->start(std::move(disks)));
        return node;
    }

    const Plan plan;
    core::VirtualWorld world;
    const std::unique_ptr<Remains> remains = std::make_unique<Remains>();
};

std::optional<Fid> owner_of(Node& node, const std::string& name) {
    const auto owner = node.part_of(name).find({.pool = kPool, .name = name});
    REQUIRE(owner.has_value());
    return *owner ? std::optional((*owner)->fid) : std::nullopt;
}

Task<void> create_one(Node* node, unsigned disk, unsigned* created) {
    const auto made = co_await node->create("one", Existing::kRefused, disk);
    if (made && *made) ++*created;
}

Task<void> create_many(Node* node, unsigned count, unsigned* created) {
    core::Gate gate;
    for (unsigned i = 0; i < count; ++i) {
        node->reactor().spawn(gate, create_one(node, i % kDisks, created));
    }
    co_await gate.close(node->reactor());
}

TEST_CASE("names: of ten thousand creates of one name, one succeeds", "[store]") {
    Stage stage(1);
    const auto node = stage.boot({0, 1});
    unsigned created = 0;
    node->finish(create_many(node.get(), 10'000, &created));

    REQUIRE(created == 1);
    REQUIRE(stage.remains->refused == 9'999);
    const auto claims = node->finish(node->made_claims());
    REQUIRE(claims.size() == 1);
    REQUIRE(owner_of(*node, "one") == claims.front().fid);
    node->finish(node->stop());
    REQUIRE(stage.remains->findings.first() == "");
}

TEST_CASE("names: a missing disk keeps its names", "[store]") {
    Stage stage(2);
    std::optional<Fid> on_missing;
    {
        const auto node = stage.boot({0, 1});
        REQUIRE(node->finish(node->create("here", Existing::kRefused, 0)).has_value());
        const auto made = node->finish(node->create("there", Existing::kRefused, 1));
        REQUIRE(made.has_value());
        on_missing = *made;
        node->finish(node->stop());
    }
    {
        const auto node = stage.boot({0});
        REQUIRE(owner_of(*node, "there") == on_missing);
        const auto refused = node->finish(node->create("there", Existing::kRefused, 0));
        REQUIRE(refused.value() == std::nullopt);
        node->finish(node->stop());
    }
    REQUIRE(stage.remains->findings.first() == "");
}

TEST_CASE("names: what was replaced on a missing disk goes when the disk is back", "[store]") {
    Stage stage(3);
    std::optional<Fid> newer;
    {
        const auto node = stage.boot({0, 1});
        REQUIRE(node->finish(node->create("a", Existing::kRefused, 1)).has_value());
        node->finish(node->stop());
    }
    {
        const auto node = stage.boot({0});
        const auto made = node->finish(node->create("a", Existing::kReplaced, 0));
        REQUIRE(made.has_value());
        newer = *made;
        // It has nothing to leave to: the one on the missing disk would have the name again.
        const auto removed = node->finish(node->remove("a", 50ms));
        REQUIRE(removed.error().code == Errc::kTimedOut);
        node->finish(node->stop());
    }
    {
        const auto node = stage.boot({0, 1});
        REQUIRE(owner_of(*node, "a") == newer);
        node->finish(node->settle());
        REQUIRE(node->finish(node->made_claims()).size() == 1);
        REQUIRE(node->finish(node->remove("a", 50ms)).has_value());
        REQUIRE(owner_of(*node, "a") == std::nullopt);
        node->finish(node->stop());
    }
    REQUIRE(stage.remains->findings.first() == "");
}

TEST_CASE("names: names that were lost are told by the disks", "[store]") {
    Stage stage(4);
    std::vector<NameClaim> claims;
    {
        const auto node = stage.boot({0, 1});
        for (unsigned i = 0; i < 600; ++i) {
            REQUIRE(node->finish(node->create("n" + std::to_string(i), Existing::kRefused, i % 2))
                        .has_value());
        }
        claims = node->finish(node->known_claims());
        REQUIRE(claims.size() == 600);
        node->finish(node->stop());
    }
    stage.remains->names[1] = {};
    const auto node = stage.boot({0, 1});
    REQUIRE(node->finish(node->known_claims()) == claims);
    node->finish(node->stop());
    REQUIRE(stage.remains->findings.first() == "");
}

TEST_CASE("names: a disk of which the names know more is an older copy", "[store]") {
    Stage stage(5);
    {
        const auto node = stage.boot({0});
        REQUIRE(node->finish(node->create("a", Existing::kRefused, 0)).has_value());
        node->finish(node->stop());
    }
    const devices::DiskImage older = stage.remains->disks[0].image;
    {
        const auto node = stage.boot({0});
        REQUIRE(node->finish(node->create("b", Existing::kRefused, 0)).has_value());
        node->finish(node->stop());
    }
    // Its index went with it, which would have said the same.
    stage.remains->disks[0].image = older;
    stage.remains->disks[0].index = {};

    const auto node = stage.boot({0});
    REQUIRE(stage.remains->findings.first().find("an older copy") != std::string::npos);
}

}  // namespace
}  // namespace fopd::store::names_testing

#include "objects/name_part.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/virtual_world.h"
#include "objects/names.h"
#include "store/map_index.h"
#include "tests/catch.h"
#include "tests/replay.h"

namespace fopd::objects {

namespace {

constexpr PoolId kPool = 1;
constexpr store::Fid kObject{.high = 1, .low = 1};
constexpr store::Fid kOtherObject{.high = 1, .low = 2};

// All names in one part, and a locality elsewhere whose operations hold names and whose volume
// tells of its changes.
class Node : fopd::testing::Replay {
public:
    Node()
        : Replay(5),
          world(5),
          random(5),
          home(world.make_reactor()),
          there(world.make_reactor()),
          index({.reactor = *there, .random = random}, image),
          shard({.reactor = *there, .clock = world.clock()}, index, {}),
          part(*there, gate, shard),
          names(*home, {&part}),
          sink(*home, part) {
        const auto opened = shard.open();
        REQUIRE(opened.has_value());
    }
    ~Node() {
        home->drop_coroutines();
        there->drop_coroutines();
    }

    // One who wants to hold a name.
    struct Wish {
        std::string name;
        bool to_remove = false;
        std::optional<Result<NameHold>> result{};

        bool has() const { return result && result->has_value(); }
        const NameHold& hold() const { return **result; }
    };
    Wish& want(const std::string& name, bool to_remove = false) {
        Wish& wish = wishes.emplace_back(name, to_remove);
        home->spawn(gate, take(&wish));
        settle();
        return wish;
    }
    void tell(const store::NameChanges& changes) {
        const auto told = world.run(*home, sink.tell(&changes));
        REQUIRE(told.has_value());
        REQUIRE(told->has_value());
        settle();
    }
    void let_go(const NameHold& hold) {
        REQUIRE(world.run(*home, names.let_go(hold)));
        settle();
    }
    // An object has the name from now on.
    void give(const std::string& name, store::Fid fid) { tell({made(want(name), fid)}); }
    static store::NameChange made(const Wish& wish, store::Fid fid) {
        return {.claim = {
                    .pool = kPool, .name = wish.name, .version = wish.hold().version, .fid = fid}};
    }
    static store::NameChange ended(const Wish& wish) {
        return {.kind = store::NameChange::Kind::kEnded,
                .claim = {.pool = kPool,
                          .name = wish.name,
                          .version = wish.hold().owner->version,
                          .fid = wish.hold().owner->fid}};
    }
    void settle() { world.run_for(1ms); }

    core::VirtualWorld world;
    core::Random random;
    std::unique_ptr<core::Reactor> home;
    std::unique_ptr<core::Reactor> there;
    core::Gate gate;
    store::MapImage image;
    store::MapIndex index;
    store::NameShard shard;
    NamePart part;
    Names names;
    DistantNames sink;
    std::deque<Wish> wishes;

private:
    Task<void> take(Wish* wish) {
        const ObjectName name{.pool = kPool, .name = wish->name};
        auto hold = wish->to_remove ? names.hold_to_remove(name, {}) : names.hold(name, {});
        auto held = co_await std::move(hold);
        wish->result.emplace(std::move(held));
    }
};

}  // namespace

TEST_CASE("objects names: who waits for a name has it when its change was told, in turn",
          "[objects]") {
    Node node;
    const Node::Wish& holder = node.want("name");
    const Node::Wish& second = node.want("name");
    const Node::Wish& third = node.want("name");
    REQUIRE_FALSE(second.has());

    node.tell({Node::made(holder, kObject)});

    REQUIRE(second.has());
    REQUIRE(second.hold().owner->fid == kObject);
    REQUIRE_FALSE(third.has());
    node.tell({Node::made(second, kOtherObject)});
    REQUIRE(third.has());
    REQUIRE(third.hold().owner->fid == kOtherObject);
}

TEST_CASE("objects names: a name that was left is free when that was told", "[objects]") {
    Node node;
    node.give("name", kObject);
    const Node::Wish& leaver = node.want("name", true);
    const Node::Wish& second = node.want("name");

    node.tell({Node::ended(leaver)});

    REQUIRE(second.has());
    REQUIRE_FALSE(second.hold().owner.has_value());
}

TEST_CASE("objects names: one change ends the holds of both its names", "[objects]") {
    Node node;
    node.give("from", kObject);
    const Node::Wish& from = node.want("from", true);
    const Node::Wish& to = node.want("to");

    node.tell({Node::ended(from), Node::made(to, kObject)});

    REQUIRE(node.want("from").has());
    REQUIRE(node.want("to").has());
}

TEST_CASE("objects names: who lets go late, or twice, ends nobody else's hold", "[objects]") {
    Node node;
    const Node::Wish& holder = node.want("name");
    const Node::Wish& second = node.want("name");
    const Node::Wish& third = node.want("name");
    node.tell({Node::made(holder, kObject)});

    node.let_go(holder.hold());
    REQUIRE_FALSE(third.has());

    node.let_go(second.hold());
    node.let_go(second.hold());
    REQUIRE(third.has());
    REQUIRE_FALSE(node.want("name").has());
}

TEST_CASE("objects names: what others tell of a name ends no hold", "[objects]") {
    Node node;
    node.give("name", kObject);
    const Node::Wish& holder = node.want("name");
    const Node::Wish& second = node.want("name");
    store::NameChange older = Node::made(holder, kOtherObject);
    older.claim.version = 1;

    node.tell({older});
    node.tell({Node::ended(holder)});
    REQUIRE_FALSE(second.has());

    node.tell({Node::made(holder, kOtherObject)});
    REQUIRE(second.has());
}

}  // namespace fopd::objects

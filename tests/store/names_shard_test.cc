// Goal: a part of the names keeps the promises of store/names.h, over every index.
// Method: single things; then random changes beside a set of claims, kept and opened again.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/offload.h"
#include "core/random.h"
#include "core/virtual_world.h"
#include "store/lmdb_index.h"
#include "store/map_index.h"
#include "store/names.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/temp_dir.h"

using namespace fopd;
using namespace fopd::store;

namespace {

constexpr std::uint32_t kPool = 1;

enum class Kind { kMap, kLmdb };

Kind any_kind() {
    return GENERATE(Kind::kMap, Kind::kLmdb);
}

devices::DiskId disk_id(unsigned number) {
    devices::DiskId id;
    id.fill(static_cast<std::byte>(number));
    return id;
}

// All names, on a reactor of their own, over an index that stays.
class Shelf : fopd::testing::Replay {
public:
    explicit Shelf(Kind kind, std::uint64_t seed = 1)
        : Replay(seed), kind_(kind), world_(seed), random_(seed), reactor_(world_.make_reactor()) {
        offload_ = core::make_virtual_offload(world_, {});
        const auto opened = open(true);
        REQUIRE(opened.has_value());
    }
    ~Shelf() { reactor_->drop_coroutines(); }

    Result<void> open(bool anew = false, NameHead part = {}) {
        names_.reset();
        index_.reset();
        if (kind_ == Kind::kMap) {
            index_ = std::make_unique<MapIndex>(
                MapIndex::World{.reactor = *reactor_, .random = random_}, image_);
        } else {
            const LmdbIndex::World world{.reactor = *reactor_, .offload = *offload_};
            const LmdbIndex::Options options{.path = directory_ / "names"};
            auto made = anew ? run(LmdbIndex::create(world, options))
                             : run(LmdbIndex::open(world, options));
            if (!made) return std::unexpected(made.error());
            index_ = std::move(*made);
        }
        names_ = std::make_unique<NameShard>(
            NameShard::World{.reactor = *reactor_, .clock = world_.clock()}, *index_,
            NameShardOptions{.part = part, .overlay_bytes = 512UL << 10});
        return names_->open();
    }

    template <typename T>
    T run(Task<T> task) {
        auto result = world_.run(*reactor_, std::move(task));
        REQUIRE(result.has_value());
        return std::move(*result);
    }
    // Begins it, and lets it come as far as it can before `span` has passed.
    void begin(Task<void> task) {
        reactor_->spawn(gate_, std::move(task));
        pass(1ms);
    }
    void pass(Duration span) { world_.run_for(span); }

    Result<void> tell(NameChanges changes) { return run(names_->tell(&changes)); }
    Result<void> made(NameClaim claim) { return tell({{.claim = std::move(claim)}}); }
    Result<void> ended(NameClaim claim) {
        return tell({{.kind = NameChange::Kind::kEnded, .claim = std::move(claim)}});
    }
    Result<void> keep(unsigned disk, std::uint64_t seq) {
        const NameSink::Kept kept{.disk = disk_id(disk), .seq = seq};
        return run(names_->keep(kept));
    }
    std::optional<Fid> find(std::string_view name) {
        const auto owner = names_->find({.pool = kPool, .name = name});
        REQUIRE(owner.has_value());
        return *owner ? std::optional((*owner)->fid) : std::nullopt;
    }
    std::vector<NameClaim> list(NameShard::Listing listing) {
        std::vector<NameClaim> all;
        for (;;) {
            const auto page = run(names_->list(listing));
            REQUIRE(page.has_value());
            REQUIRE(page->claims.size() <= listing.count_max);
            all.insert(all.end(), page->claims.begin(), page->claims.end());
            if (page->end) return all;
            REQUIRE(page->claims.size() == listing.count_max);
            listing.behind = all.back().name;
        }
    }
    std::vector<NameClaim> replaced(std::uint32_t count_max = 7) {
        std::vector<NameClaim> all;
        NameShard::Replaced which{.count_max = count_max};
        for (;;) {
            const auto page = run(names_->replaced(which));
            REQUIRE(page.has_value());
            all.insert(all.end(), page->claims.begin(), page->claims.end());
            if (page->end) return all;
            which.behind = all.back();
        }
    }

    NameShard& names() { return *names_; }
    MapImage& image() { return image_; }
    core::VirtualWorld& world() { return world_; }
    core::Reactor& reactor() { return *reactor_; }

private:
    const Kind kind_;
    TempDir directory_;
    core::VirtualWorld world_;
    core::Random random_;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<core::Offload> offload_;
    MapImage image_;
    std::unique_ptr<Index> index_;
    std::unique_ptr<NameShard> names_;
    core::Gate gate_;
};

NameClaim claim(std::string name, std::uint64_t version, std::uint64_t object, Slot slot = 0) {
    return {.pool = kPool,
            .name = std::move(name),
            .version = version,
            .fid = {.high = std::uint64_t{slot} << 48, .low = object}};
}

Fid fid(std::uint64_t object, Slot slot = 0) {
    return claim("", 0, object, slot).fid;
}

// As their keys are ordered.
struct ByKey {
    bool operator()(const NameClaim& a, const NameClaim& b) const {
        return std::tuple(a.pool, a.name, ~a.version, a.fid) <
               std::tuple(b.pool, b.name, ~b.version, b.fid);
    }
};

// Someone who wants a name and keeps it until it is told to let go.
struct Wanting {
    std::optional<Result<ReservedName>> hold;
};

Task<void> want(NameShard* names, std::string name, core::WaitOptions wait, Wanting* wanting) {
    PoolName wanted(kPool, name);
    auto hold = co_await names->reserve(std::move(wanted), wait);
    wanting->hold.emplace(std::move(hold));
}

Task<void> want_to_leave(NameShard* names, std::string name, core::WaitOptions wait,
                         Wanting* wanting) {
    PoolName wanted(kPool, name);
    auto hold = co_await names->reserve_to_leave(std::move(wanted), wait);
    wanting->hold.emplace(std::move(hold));
}

Task<void> wait_for_replaced(NameShard* names, bool* done) {
    const core::WaitOptions wait{};
    const auto waited = co_await names->wait_replaced(names->replaced_count(), wait);
    *done = waited.has_value();
}

Task<void> keep_one(NameShard* names, unsigned disk, bool* done) {
    const NameSink::Kept kept{.disk = disk_id(disk), .seq = 10 + disk};
    const auto result = co_await names->keep(kept);
    *done = result.has_value();
}

}  // namespace

TEST_CASE("store names: a claim is found until it has ended", "[store]") {
    Shelf shelf(any_kind());
    REQUIRE(shelf.find("a") == std::nullopt);

    REQUIRE(shelf.made(claim("a", 5, 1)).has_value());
    REQUIRE(shelf.find("a") == fid(1));
    REQUIRE(shelf.find("aa") == std::nullopt);

    REQUIRE(shelf.ended(claim("a", 5, 1)).has_value());
    REQUIRE(shelf.find("a") == std::nullopt);
}

TEST_CASE("store names: the highest version is the owner, whoever comes first", "[store]") {
    const bool newer_first = GENERATE(false, true);
    Shelf shelf(any_kind());
    const NameClaim older = claim("a", 5, 1);
    const NameClaim newer = claim("a", 6, 2, 1);

    REQUIRE(shelf.made(newer_first ? newer : older).has_value());
    REQUIRE(shelf.made(newer_first ? older : newer).has_value());

    REQUIRE(shelf.find("a") == fid(2, 1));
    REQUIRE(shelf.replaced() == std::vector{older});
    REQUIRE(shelf.made(older).has_value());
    REQUIRE(shelf.made(newer).has_value());
    REQUIRE(shelf.replaced() == std::vector{older});
}

TEST_CASE("store names: when the owner's claim ends, the remaining claim is the owner's",
          "[store]") {
    Shelf shelf(any_kind());
    REQUIRE(shelf.made(claim("a", 5, 1)).has_value());
    REQUIRE(shelf.made(claim("a", 6, 2)).has_value());

    REQUIRE(shelf.ended(claim("a", 6, 2)).has_value());

    REQUIRE(shelf.find("a") == fid(1));
    REQUIRE(shelf.replaced().empty());
}

TEST_CASE("store names: only kept claims survive a restart", "[store]") {
    Shelf shelf(any_kind());
    REQUIRE(shelf.made(claim("a", 5, 1)).has_value());
    REQUIRE(shelf.made(claim("a", 6, 2)).has_value());
    REQUIRE(shelf.keep(1, 77).has_value());
    REQUIRE(shelf.made(claim("b", 5, 3)).has_value());

    REQUIRE(shelf.open().has_value());

    REQUIRE(shelf.find("a") == fid(2));
    REQUIRE(shelf.find("b") == std::nullopt);
    REQUIRE(shelf.replaced() == std::vector{claim("a", 5, 1)});
    REQUIRE(shelf.run(shelf.names().known(disk_id(1))).value() == 77);
    REQUIRE(shelf.run(shelf.names().known(disk_id(2))).value() == 0);
}

TEST_CASE("store names: an index of another part is refused", "[store]") {
    Shelf shelf(any_kind());
    REQUIRE(shelf.keep(1, 1).has_value());

    const auto more = shelf.open(false, {.shard = 0, .shard_count = 2});
    REQUIRE(more.error().code == Errc::kInvalid);
    REQUIRE(shelf.open().has_value());
}

TEST_CASE("store names: an index that holds something else is refused", "[store]") {
    Shelf shelf(Kind::kMap);
    shelf.image().entries.emplace("o1", "2");

    const auto opened = shelf.open();
    REQUIRE(opened.error().code == Errc::kCorrupt);
}

TEST_CASE("store names: what cannot be a name is refused", "[store]") {
    Shelf shelf(Kind::kMap);
    for (const std::string& name : {std::string(), std::string(481, 'n'), std::string("a\0b", 3)}) {
        const auto found = shelf.names().find({.pool = kPool, .name = name});
        REQUIRE(found.error().code == Errc::kInvalid);
        Wanting wanting;
        shelf.begin(want(&shelf.names(), name, {}, &wanting));
        REQUIRE(wanting.hold->error().code == Errc::kInvalid);
        REQUIRE(shelf.made(claim(name, 1, 1)).error().code == Errc::kInvalid);
    }
    const auto high = shelf.made(claim("a", kNameVersionEnd, 1));
    REQUIRE(high.error().code == Errc::kInvalid);
}

TEST_CASE("store names: a disk that is forgotten is not known, and others are", "[store]") {
    Shelf shelf(any_kind());
    std::vector<NameClaim> others;
    for (unsigned i = 0; i < 700; ++i) {
        const auto name = "name-" + std::to_string(1000 + i);
        const auto slot = static_cast<Slot>(i % 2);
        REQUIRE(shelf.made(claim(name, 1, i, slot)).has_value());
        if (slot == 0) others.push_back(claim(name, 1, i));
    }
    REQUIRE(shelf.made(claim("name-1000", 2, 9'999, 1)).has_value());
    REQUIRE(shelf.keep(1, 77).has_value());
    REQUIRE(shelf.keep(2, 88).has_value());

    const NameSink::Origin origin{.disk = disk_id(2), .slot = 1};
    REQUIRE(shelf.run(shelf.names().forget(origin)).has_value());

    REQUIRE(shelf.list({.pool = kPool}) == others);
    REQUIRE(shelf.replaced().empty());
    REQUIRE(shelf.run(shelf.names().known(disk_id(1))).value() == 77);
    REQUIRE(shelf.run(shelf.names().known(disk_id(2))).value() == 0);
}

TEST_CASE("store names: a list has the names of a pool with a prefix, page by page", "[store]") {
    Shelf shelf(any_kind());
    for (const char* const name : {"a", "a/1", "a/2", "a/3", "ab", "b"}) {
        REQUIRE(shelf.made(claim(name, 2, 1)).has_value());
        REQUIRE(shelf.made(claim(name, 1, 2)).has_value());
    }
    NameClaim elsewhere = claim("a/9", 1, 3);
    elsewhere.pool = 2;
    REQUIRE(shelf.made(elsewhere).has_value());

    const std::vector all{claim("a", 2, 1),   claim("a/1", 2, 1), claim("a/2", 2, 1),
                          claim("a/3", 2, 1), claim("ab", 2, 1),  claim("b", 2, 1)};
    const std::vector within{claim("a/1", 2, 1), claim("a/2", 2, 1), claim("a/3", 2, 1)};
    for (const std::uint32_t count : {1U, 2U, 3U, 100U}) {
        REQUIRE(shelf.list({.pool = kPool, .count_max = count}) == all);
        REQUIRE(shelf.list({.pool = kPool, .prefix = "a/", .count_max = count}) == within);
    }
    REQUIRE(shelf.list({.pool = kPool, .prefix = "a/", .behind = "a/1"}) ==
            std::vector(within.begin() + 1, within.end()));
    REQUIRE(shelf.list({.pool = kPool, .prefix = "a/", .behind = "Z"}) == within);
    REQUIRE(shelf.list({.pool = kPool, .prefix = "a/", .behind = "b"}).empty());
    REQUIRE(shelf.list({.pool = 2}) == std::vector{elsewhere});
    REQUIRE(shelf.list({.pool = 3}).empty());
}

TEST_CASE("store names: a list passes over thousands that are gone", "[store]") {
    Shelf shelf(any_kind());
    for (unsigned i = 0; i < 3'000; ++i) {
        REQUIRE(shelf.made(claim("n" + std::to_string(10'000 + i), 1, i)).has_value());
    }
    REQUIRE(shelf.keep(1, 1).has_value());
    for (unsigned i = 0; i < 2'999; ++i) {
        REQUIRE(shelf.ended(claim("n" + std::to_string(10'000 + i), 1, i)).has_value());
    }

    REQUIRE(shelf.list({.pool = kPool}) == std::vector{claim("n12999", 1, 2'999)});
}

TEST_CASE("store names: pages of several parts make one", "[store]") {
    const std::uint64_t seed = GENERATE(range(1U, 20U));
    CAPTURE(seed);
    core::Random random(seed);
    constexpr unsigned kParts = 3;
    std::array<std::vector<NameClaim>, kParts> parts;
    std::vector<NameClaim> all;
    const auto count = static_cast<unsigned>(random.below(40));
    for (unsigned i = 100; i < 100 + count; ++i) {
        all.push_back(claim("n" + std::to_string(i), 1, i));
        parts[random.below(kParts)].push_back(all.back());
    }
    const auto count_max = static_cast<std::uint32_t>(1 + random.below(10));

    std::vector<NameClaim> listed;
    for (bool end = false; !end;) {
        std::vector<NamePage> pages;
        for (const auto& part : parts) {
            NamePage page{.claims = {}, .end = true};
            for (const NameClaim& each : part) {
                if (!listed.empty() && each.name <= listed.back().name) continue;
                if (page.claims.size() == count_max) page.end = false;
                if (page.end) page.claims.push_back(each);
            }
            pages.push_back(std::move(page));
        }
        const NamePage merged = merge_pages(std::move(pages), count_max);
        REQUIRE((merged.end || !merged.claims.empty()));
        REQUIRE(merged.claims.size() <= count_max);
        listed.insert(listed.end(), merged.claims.begin(), merged.claims.end());
        end = merged.end;
    }

    REQUIRE(listed == all);
}

// -- holds --

TEST_CASE("store names: a name that is held is handed on in order", "[store]") {
    Shelf shelf(Kind::kMap);
    std::vector<Wanting> wanting(3);
    for (Wanting& each : wanting) shelf.begin(want(&shelf.names(), "a", {}, &each));
    Wanting other;
    shelf.begin(want(&shelf.names(), "b", {}, &other));
    REQUIRE(other.hold.has_value());
    REQUIRE(wanting[0].hold.has_value());
    REQUIRE_FALSE(wanting[1].hold.has_value());

    REQUIRE(shelf.made(claim("a", wanting[0].hold->value().version(), 1)).has_value());
    wanting[0].hold.reset();
    Wanting late;
    shelf.begin(want(&shelf.names(), "a", {}, &late));
    REQUIRE(wanting[1].hold.has_value());
    REQUIRE(wanting[1].hold->value().owner()->fid == fid(1));
    REQUIRE_FALSE(wanting[2].hold.has_value());
    REQUIRE_FALSE(late.hold.has_value());

    wanting[1].hold.reset();
    shelf.pass(1ms);
    REQUIRE(wanting[2].hold.has_value());
    wanting[2].hold.reset();
    shelf.pass(1ms);
    REQUIRE(late.hold.has_value());
}

TEST_CASE("store names: a wait for a name ends at its deadline or when cancelled", "[store]") {
    Shelf shelf(Kind::kMap);
    Wanting first;
    Wanting timed;
    Wanting cancelled;
    Wanting last;
    core::CancelSource cancel;
    shelf.begin(want(&shelf.names(), "a", {}, &first));
    shelf.begin(want(&shelf.names(), "a",
                     {.deadline = after(shelf.reactor().now(), 10ms), .cancel = nullptr}, &timed));
    shelf.begin(want(&shelf.names(), "a", {.deadline = kNever, .cancel = &cancel}, &cancelled));
    shelf.begin(want(&shelf.names(), "a", {}, &last));
    shelf.pass(20ms);
    cancel.cancel();
    shelf.pass(1ms);
    REQUIRE(timed.hold->error().code == Errc::kTimedOut);
    REQUIRE(cancelled.hold->error().code == Errc::kCancelled);
    REQUIRE_FALSE(last.hold.has_value());

    first.hold.reset();
    shelf.pass(1ms);
    REQUIRE(last.hold.has_value());
}

TEST_CASE("store names: a version is higher than what was told or given, and than the time",
          "[store]") {
    Shelf shelf(Kind::kMap);
    const auto now = static_cast<std::uint64_t>(shelf.world().clock().wall().unix_ns);
    Wanting first;
    shelf.begin(want(&shelf.names(), "a", {}, &first));
    const std::uint64_t version = first.hold->value().version();
    REQUIRE(version >= now);

    Wanting second;
    shelf.begin(want(&shelf.names(), "b", {}, &second));
    REQUIRE(second.hold->value().version() > version);

    REQUIRE(shelf.made(claim("c", kNameVersionEnd - 10, 1)).has_value());
    Wanting third;
    shelf.begin(want(&shelf.names(), "c", {}, &third));
    REQUIRE(third.hold->value().version() == kNameVersionEnd - 9);
}

TEST_CASE("store names: a name without an owner cannot be reserved to leave", "[store]") {
    Shelf shelf(Kind::kMap);
    Wanting leaving;
    shelf.begin(want_to_leave(&shelf.names(), "a", {}, &leaving));
    REQUIRE(leaving.hold->error().code == Errc::kNotFound);

    Wanting next;
    shelf.begin(want(&shelf.names(), "a", {}, &next));
    REQUIRE(next.hold.has_value());
}

TEST_CASE("store names: a name is left when what it replaced is gone", "[store]") {
    Shelf shelf(Kind::kMap);
    REQUIRE(shelf.made(claim("a", 1, 1)).has_value());
    REQUIRE(shelf.made(claim("a", 2, 2)).has_value());
    Wanting leaving;
    Wanting impatient;
    shelf.begin(want_to_leave(&shelf.names(), "a", {}, &leaving));
    shelf.pass(1s);
    REQUIRE_FALSE(leaving.hold.has_value());

    REQUIRE(shelf.ended(claim("a", 1, 1)).has_value());
    shelf.pass(1ms);
    REQUIRE(leaving.hold.has_value());
    REQUIRE(leaving.hold->value().owner()->fid == fid(2));

    leaving.hold.reset();
    REQUIRE(shelf.made(claim("a", 1, 1)).has_value());
    shelf.begin(want_to_leave(&shelf.names(), "a",
                              {.deadline = after(shelf.reactor().now(), 10ms), .cancel = nullptr},
                              &impatient));
    shelf.pass(20ms);
    REQUIRE(impatient.hold->error().code == Errc::kTimedOut);
}

TEST_CASE("store names: a new replaced object wakes the waiter", "[store]") {
    Shelf shelf(Kind::kMap);
    bool heard = false;
    REQUIRE(shelf.made(claim("a", 1, 1)).has_value());
    shelf.begin(wait_for_replaced(&shelf.names(), &heard));
    REQUIRE(shelf.made(claim("b", 1, 2)).has_value());
    shelf.pass(1ms);
    REQUIRE_FALSE(heard);

    REQUIRE(shelf.made(claim("a", 2, 3)).has_value());
    shelf.pass(1ms);
    REQUIRE(heard);
}

TEST_CASE("store names: an owner that reserved the name replaced the old one knowingly",
          "[store]") {
    Shelf shelf(any_kind());
    const NameClaim first = claim("a", 1, 1);
    REQUIRE(shelf.made(first).has_value());
    Wanting wanting;
    shelf.begin(want(&shelf.names(), "a", {}, &wanting));
    const std::uint64_t version = wanting.hold->value().version();
    const NameClaim second = claim("a", version, 2);
    // Of a disk that has come meanwhile.
    const NameClaim unknown = claim("a", version - 1, 3);

    SECTION("and nobody else's") {
        REQUIRE(shelf.made(unknown).has_value());
        REQUIRE(shelf.made(second).has_value());
        REQUIRE_FALSE(shelf.names().was_replaced_knowingly(unknown));
    }
    SECTION("until that is gone") {
        REQUIRE(shelf.made(second).has_value());
        REQUIRE(shelf.made(unknown).has_value());
        REQUIRE(shelf.names().was_replaced_knowingly(first));
        REQUIRE_FALSE(shelf.names().was_replaced_knowingly(unknown));
        REQUIRE(shelf.ended(first).has_value());
        REQUIRE_FALSE(shelf.names().was_replaced_knowingly(first));
    }
    SECTION("but not one of another life") {
        REQUIRE(shelf.made(second).has_value());
        wanting.hold.reset();
        REQUIRE(shelf.keep(1, 1).has_value());
        REQUIRE(shelf.open().has_value());
        REQUIRE(shelf.replaced() == std::vector{first});
        REQUIRE_FALSE(shelf.names().was_replaced_knowingly(first));
    }
}

// -- keeping --

TEST_CASE("store names: many keep at once, and all of it is kept", "[store]") {
    Shelf shelf(any_kind());
    constexpr unsigned kDisks = 20;
    std::array<bool, kDisks> done{};
    for (unsigned disk = 0; disk < kDisks; ++disk) {
        REQUIRE(shelf.made(claim("n" + std::to_string(disk), 1, disk)).has_value());
        shelf.begin(keep_one(&shelf.names(), disk, &done[disk]));
    }
    // A few rounds of what one takes, at most 40 ms in the map.
    shelf.pass(200ms);
    REQUIRE(std::ranges::all_of(done, [](bool each) { return each; }));

    REQUIRE(shelf.open().has_value());
    for (unsigned disk = 0; disk < kDisks; ++disk) {
        REQUIRE(shelf.find("n" + std::to_string(disk)) == fid(disk));
        REQUIRE(shelf.run(shelf.names().known(disk_id(disk))).value() == 10 + disk);
    }
}

TEST_CASE("store names: what could not be kept for want of room is kept later", "[store]") {
    Shelf shelf(Kind::kMap);
    shelf.image().refusal = Error{.code = Errc::kNoSpace, .context = "index file system"};
    REQUIRE(shelf.made(claim("a", 1, 1)).has_value());
    REQUIRE(shelf.keep(1, 5).error().code == Errc::kNoSpace);
    REQUIRE(shelf.made(claim("b", 1, 2)).has_value());
    REQUIRE(shelf.find("a") == fid(1));

    shelf.image().refusal.reset();
    REQUIRE(shelf.keep(1, 6).has_value());
    REQUIRE(shelf.open().has_value());
    REQUIRE(shelf.find("a") == fid(1));
    REQUIRE(shelf.find("b") == fid(2));
}

TEST_CASE("store names: reserving waits when the claims use too much memory", "[store]") {
    Shelf shelf(Kind::kMap);
    shelf.image().refusal = Error{.code = Errc::kNoSpace, .context = "index file system"};
    const std::string tail(400, 'x');
    unsigned told = 0;
    for (;; ++told) {
        REQUIRE(told < 5'000);
        Wanting wanting;
        shelf.begin(want(&shelf.names(), std::to_string(told) + tail, {}, &wanting));
        shelf.pass(50ms);
        REQUIRE(wanting.hold.has_value());
        if (!*wanting.hold) {
            REQUIRE(wanting.hold->error().code == Errc::kNoSpace);
            break;
        }
        REQUIRE(shelf.made(claim(std::to_string(told) + tail, 1, told)).has_value());
    }
    REQUIRE(told > 100);

    shelf.image().refusal.reset();
    Wanting wanting;
    shelf.begin(want(&shelf.names(), "a", {}, &wanting));
    shelf.pass(100ms);
    REQUIRE(wanting.hold->has_value());
}

// -- all of it --

TEST_CASE("store names: the owners follow from the set of claims", "[store][swarm]") {
    const Kind kind = any_kind();
    const std::uint64_t seed = GENERATE(range(1U, 9U));
    CAPTURE(seed);
    Shelf shelf(kind, seed);
    core::Random random(seed);
    using Claims = std::set<NameClaim, ByKey>;
    Claims claims;
    Claims kept;
    for (unsigned round = 0; round < 60; ++round) {
        NameChanges changes;
        for (auto left = random.below(30); left > 0; --left) {
            NameClaim one = claim("n" + std::to_string(random.below(12)), random.below(4),
                                  random.below(4), static_cast<Slot>(random.below(2)));
            const auto kind_of_change =
                random.below(5) < 3 ? NameChange::Kind::kMade : NameChange::Kind::kEnded;
            if (kind_of_change == NameChange::Kind::kMade) {
                claims.insert(one);
            } else {
                claims.erase(one);
            }
            changes.push_back({.kind = kind_of_change, .claim = std::move(one)});
        }
        REQUIRE(shelf.tell(std::move(changes)).has_value());
        if (random.below(3) == 0) {
            REQUIRE(shelf.keep(1, round + 1).has_value());
            kept = claims;
        }
        if (random.below(6) == 0) {
            REQUIRE(shelf.open().has_value());
            claims = kept;
        }

        std::vector<NameClaim> owners;
        std::vector<NameClaim> others;
        for (const NameClaim& each : claims) {
            const bool is_owner = owners.empty() || owners.back().name != each.name;
            (is_owner ? owners : others).push_back(each);
        }
        REQUIRE(shelf.list({.pool = kPool, .count_max = 5}) == owners);
        REQUIRE(shelf.replaced() == others);
        for (unsigned i = 0; i < 12; ++i) {
            const std::string name = "n" + std::to_string(i);
            const auto owner = std::ranges::find(owners, name, &NameClaim::name);
            REQUIRE(shelf.find(name) ==
                    (owner == owners.end() ? std::nullopt : std::optional(owner->fid)));
        }
    }
}

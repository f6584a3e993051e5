// Goal: a part of the names keeps the promises of store/names.h, over every index;
// name_holds_test.cc has those of holds. Method: single things; then random changes beside a set of
// claims, kept and opened again.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/store/name_shelf.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

// As their keys are ordered.
struct ByKey {
    bool operator()(const NameClaim& a, const NameClaim& b) const {
        return std::tuple(a.pool, a.name, ~a.version, a.fid) <
               std::tuple(b.pool, b.name, ~b.version, b.fid);
    }
};

Task<void> keep_one(NameShard* names, unsigned disk, bool* done) {
    const NameSink::Kept kept{.disk = disk_id(disk), .seq = 10 + disk};
    const auto result = co_await names->keep(kept);
    *done = result.has_value();
}

}  // namespace

TEST_CASE("store names: a claim is found until it has ended", "[store]") {
    NameShelf shelf(any_kind());
    REQUIRE(shelf.find("a") == std::nullopt);

    REQUIRE(shelf.made(claim("a", 5, 1)).has_value());
    REQUIRE(shelf.find("a") == fid(1));
    REQUIRE(shelf.find("aa") == std::nullopt);

    REQUIRE(shelf.ended(claim("a", 5, 1)).has_value());
    REQUIRE(shelf.find("a") == std::nullopt);
}

TEST_CASE("store names: the highest version is the owner, whoever comes first", "[store]") {
    const bool newer_first = GENERATE(false, true);
    NameShelf shelf(any_kind());
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
    NameShelf shelf(any_kind());
    REQUIRE(shelf.made(claim("a", 5, 1)).has_value());
    REQUIRE(shelf.made(claim("a", 6, 2)).has_value());

    REQUIRE(shelf.ended(claim("a", 6, 2)).has_value());

    REQUIRE(shelf.find("a") == fid(1));
    REQUIRE(shelf.replaced().empty());
}

TEST_CASE("store names: only kept claims survive a restart", "[store]") {
    NameShelf shelf(any_kind());
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
    NameShelf shelf(any_kind());
    REQUIRE(shelf.keep(1, 1).has_value());

    const auto more = shelf.open(false, {.shard = 0, .shard_count = 2});
    REQUIRE(more.error().code == Errc::kInvalid);
    REQUIRE(shelf.open().has_value());
}

TEST_CASE("store names: an index that holds something else is refused", "[store]") {
    NameShelf shelf(IndexKind::kMap);
    shelf.image().entries.emplace("o1", "2");

    const auto opened = shelf.open();
    REQUIRE(opened.error().code == Errc::kCorrupt);
}

TEST_CASE("store names: what cannot be a name is refused", "[store]") {
    NameShelf shelf(IndexKind::kMap);
    for (const std::string& name : {std::string(), std::string(481, 'n'), std::string("a\0b", 3)}) {
        const auto found = shelf.names().find({.pool = kShelfPool, .name = name});
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
    NameShelf shelf(any_kind());
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

    REQUIRE(shelf.list({.pool = kShelfPool}) == others);
    REQUIRE(shelf.replaced().empty());
    REQUIRE(shelf.run(shelf.names().known(disk_id(1))).value() == 77);
    REQUIRE(shelf.run(shelf.names().known(disk_id(2))).value() == 0);
}

TEST_CASE("store names: a list has the names of a pool with a prefix, page by page", "[store]") {
    NameShelf shelf(any_kind());
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
        REQUIRE(shelf.list({.pool = kShelfPool, .count_max = count}) == all);
        REQUIRE(shelf.list({.pool = kShelfPool, .prefix = "a/", .count_max = count}) == within);
    }
    REQUIRE(shelf.list({.pool = kShelfPool, .prefix = "a/", .behind = "a/1"}) ==
            std::vector(within.begin() + 1, within.end()));
    REQUIRE(shelf.list({.pool = kShelfPool, .prefix = "a/", .behind = "Z"}) == within);
    REQUIRE(shelf.list({.pool = kShelfPool, .prefix = "a/", .behind = "b"}).empty());
    REQUIRE(shelf.list({.pool = 2}) == std::vector{elsewhere});
    REQUIRE(shelf.list({.pool = 3}).empty());
}

TEST_CASE("store names: a list passes over thousands that are gone", "[store]") {
    NameShelf shelf(any_kind());
    for (unsigned i = 0; i < 3'000; ++i) {
        REQUIRE(shelf.made(claim("n" + std::to_string(10'000 + i), 1, i)).has_value());
    }
    REQUIRE(shelf.keep(1, 1).has_value());
    for (unsigned i = 0; i < 2'999; ++i) {
        REQUIRE(shelf.ended(claim("n" + std::to_string(10'000 + i), 1, i)).has_value());
    }

    REQUIRE(shelf.list({.pool = kShelfPool}) == std::vector{claim("n12999", 1, 2'999)});
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

// -- keeping --

TEST_CASE("store names: many keep at once, and all of it is kept", "[store]") {
    NameShelf shelf(any_kind());
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
    NameShelf shelf(IndexKind::kMap);
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
    NameShelf shelf(IndexKind::kMap);
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
    const IndexKind kind = any_kind();
    const std::uint64_t seed = GENERATE(range(1U, 9U));
    CAPTURE(seed);
    NameShelf shelf(kind, seed);
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
        REQUIRE(shelf.list({.pool = kShelfPool, .count_max = 5}) == owners);
        REQUIRE(shelf.replaced() == others);
        for (unsigned i = 0; i < 12; ++i) {
            const std::string name = "n" + std::to_string(i);
            const auto owner = std::ranges::find(owners, name, &NameClaim::name);
            REQUIRE(shelf.find(name) ==
                    (owner == owners.end() ? std::nullopt : std::optional(owner->fid)));
        }
    }
}

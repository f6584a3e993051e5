// Goal: an object's pool is the one in its record, so that disks of one pool have objects of
// another. Method: a node whose disks are of the pool fast, which is the staging of the tape pool
// cold.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "fop/listing.h"
#include "objects/fids.h"
#include "objects/home_volume.h"
#include "objects/object_change.h"
#include "objects/store_check.h"
#include "reqh/executors.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing::tape_pools {

namespace {

using objects::Amount;

StageOptions with_cold(std::uint64_t fast_blocks = 1000, std::uint64_t cold_blocks = 1000) {
    return {
        .localities = 2, .disks = 2, .quota_blocks = fast_blocks, .cold_quota_blocks = cold_blocks};
}

FopSpec create_in(std::string pool, std::string_view name, std::uint16_t slot = kFirstSlot) {
    return {.type = type_of("create"),
            .body = fop::Create{.name = name, .slot = slot, .mode = 0600},
            .pool = std::move(pool)};
}

fop::Fid create(StoreStage& stage, std::string pool, std::string_view name,
                std::uint16_t slot = kFirstSlot, std::string principal = "alice") {
    FopSpec spec = create_in(std::move(pool), name, slot);
    spec.principal = std::move(principal);
    FakeFop& fop = stage.call(std::move(spec));
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::CreateReply>(fop.answer->body).fid;
}

fop::Status write_blocks(StoreStage& stage, fop::Fid fid, std::uint64_t first,
                         std::uint64_t blocks) {
    const Bytes bytes = pattern(blocks * kBlock, 1);
    const WriteSpec write(fid, {{.offset = first * kBlock, .length = bytes.size()}}, bytes);
    return stage.call(write.spec(WriteSpec::Way::kMemory)).status();
}

FopSpec lookup(std::string pool, std::string_view name) {
    return {.type = type_of("lookup"), .body = fop::Lookup{.name = name}, .pool = std::move(pool)};
}

fop::Fid found(StoreStage& stage, std::string pool, std::string_view name) {
    FakeFop& fop = stage.call(lookup(std::move(pool), name), 1);
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::LookupReply>(fop.answer->body).attributes.fid;
}

std::vector<std::string> listed(StoreStage& stage, std::string pool) {
    FakeFop& fop =
        stage.call({.type = type_of("list"), .body = fop::ListObjects{}, .pool = std::move(pool)});
    REQUIRE(fop.status() == fop::Status::kDone);
    std::vector<std::string> names;
    const auto entries = fop::read_list(fop.answer->payload);
    REQUIRE(entries.has_value());
    for (const fop::ListEntry& each : *entries) {
        names.emplace_back(each.name);
    }
    return names;
}

FopSpec rename_to(fop::Fid fid, std::string_view name, bool no_replace = false) {
    return {.type = type_of("rename"),
            .body = fop::Rename{.fid = fid, .name = name, .no_replace = no_replace}};
}

FopSpec remove(fop::Fid fid) {
    return {.type = type_of("delete"), .body = fop::Delete{.fid = fid}};
}

// Of a disk, to its end.
objects::CheckStatus run_check(StoreStage& stage, std::uint32_t disk = 0) {
    objects::StoreCheck check(stage.stores(disk), 1UL << 30);
    const std::uint16_t slot = stage.slot(disk);
    REQUIRE(check.begin(slot).has_value());
    while (check.status(slot).state == objects::CheckStatus::State::kRunning) {
        REQUIRE(stage.world.step());
    }
    objects::CheckStatus status = check.status(slot);
    for (const auto& finding : status.report.findings) UNSCOPED_INFO(finding.reason);
    return status;
}

std::map<std::string, std::uint64_t> object_counts(StoreStage& stage) {
    FakeFop& fop = stage.call({.type = type_of("statfs"), .body = fop::Statfs{}});
    REQUIRE(fop.status() == fop::Status::kDone);
    std::map<std::string, std::uint64_t> counts;
    const auto pools = fop::read_pools(fop.answer->payload);
    for (const fop::PoolEntry& each : *pools) counts[std::string(each.pool)] = each.objects;
    return counts;
}

}  // namespace

TEST_CASE("reqh tape pool: its objects are stored on the disks of its staging", "[reqh]") {
    StoreStage stage(with_cold());
    const fop::Fid fid = create(stage, "cold", "one");
    const Bytes bytes = pattern(3 * kBlock + 17, 5);
    stage.write(fid, 0, bytes);

    REQUIRE(stage.read(fid, 0, bytes.size()) == bytes);
    CHECK(found(stage, "cold", "one") == fid);
    FopSpec stat{.type = type_of("stat"), .body = fop::Stat{.fid = fid}, .pool = "cold"};
    CHECK(stage.call(stat, 1).status() == fop::Status::kDone);
    stat.pool = "fast";
    CHECK(stage.call(stat, 1).status() == fop::Status::kWrongPool);
    CHECK(stage.call(create_in("slow", "one")).status() == fop::Status::kWrongPool);
}

TEST_CASE("reqh tape pool: a slot is listed for each pool that it takes, its own last", "[reqh]") {
    StoreStage stage(with_cold());
    FakeFop& slots = stage.call({.type = type_of("slots"), .body = fop::Slots{}});
    const auto entries = fop::read_slots(slots.answer->payload);
    REQUIRE(entries->size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK((*entries)[i].slot == kFirstSlot + i / 2);
        CHECK((*entries)[i].pool == (i % 2 == 0 ? "cold" : "fast"));
        CHECK((*entries)[i].in_default_pool == (i % 2 == 1));
        CHECK((*entries)[i].state == fop::ListedSlotState::kOnline);
    }
}

TEST_CASE("reqh tape pool: the space of the disks is its staging's, objects are counted apart",
          "[reqh]") {
    StoreStage stage(with_cold());
    create(stage, "fast", "one");
    const fop::Fid fid = create(stage, "cold", "one");
    create(stage, "cold", "two", kFirstSlot + 1);
    REQUIRE(write_blocks(stage, fid, 0, 10) == fop::Status::kDone);

    FakeFop& room = stage.call({.type = type_of("statfs"), .body = fop::Statfs{}});
    const auto pools = fop::read_pools(room.answer->payload);
    REQUIRE(pools->size() == 3);
    const auto& all = std::get<fop::StatfsReply>(room.answer->body);
    CHECK(all.objects == 3);
    CHECK((*pools)[0].objects == 1);
    CHECK((*pools)[0].total_bytes == all.total_bytes);
    CHECK((*pools)[0].used_bytes == all.used_bytes);
    // What its objects take; there is no library with cartridges.
    CHECK((*pools)[2] ==
          fop::PoolEntry{.used_bytes = 10 * fop::kBlockBytes, .objects = 2, .pool = "cold"});

    stage.restart();
    stage.run_for(5s);
    CHECK(object_counts(stage) ==
          std::map<std::string, std::uint64_t>{{"cold", 2}, {"fast", 1}, {"slow", 0}});
    REQUIRE(stage.call(remove(fid)).status() == fop::Status::kDone);
    CHECK(object_counts(stage)["cold"] == 1);
}

TEST_CASE("reqh tape pool: each pool has a quota of its own on the same disks", "[reqh]") {
    StoreStage stage(with_cold(10, 20));
    const fop::Fid fast = create(stage, "fast", "one");
    const fop::Fid cold = create(stage, "cold", "one");
    REQUIRE(write_blocks(stage, fast, 0, 10) == fop::Status::kDone);
    REQUIRE(write_blocks(stage, fast, 10, 1) == fop::Status::kQuota);
    REQUIRE(write_blocks(stage, cold, 0, 20) == fop::Status::kDone);

    const Bytes bytes = pattern(kBlock, 1);
    const WriteSpec more(cold, {{.offset = 20 * kBlock, .length = kBlock}}, bytes);
    FakeFop& refused = stage.call(more.spec(WriteSpec::Way::kMemory), 1);
    REQUIRE(refused.status() == fop::Status::kQuota);
    CHECK(refused.answer->words ==
          "quota of all in pool cold: 81920 of 81920 bytes used, 4096 more wanted");
    CHECK(stage.quota_of("fast").whole().used() == Amount{.blocks = 10, .objects = 1});
    CHECK(stage.quota_of("cold").whole().used() == Amount{.blocks = 20, .objects = 1});

    REQUIRE(stage.call(remove(fast)).status() == fop::Status::kDone);
    CHECK(stage.quota_of("fast").whole().used().is_none());
    CHECK(write_blocks(stage, cold, 20, 1) == fop::Status::kQuota);
}

TEST_CASE("reqh tape pool: what owners use in each pool is the same after a restart", "[reqh]") {
    StoreStage stage(with_cold());
    const fop::Fid fast = create(stage, "fast", "one");
    const fop::Fid cold = create(stage, "cold", "one");
    const fop::Fid bobs = create(stage, "cold", "two", kFirstSlot + 1, "bob");
    REQUIRE(write_blocks(stage, fast, 0, 3) == fop::Status::kDone);
    REQUIRE(write_blocks(stage, cold, 0, 9) == fop::Status::kDone);
    REQUIRE(write_blocks(stage, bobs, 0, 5) == fop::Status::kDone);
    // A cleared range, whose blocks do not count.
    REQUIRE(stage.call(truncate(cold, 4 * kBlock)).status() == fop::Status::kDone);
    // An upload of cold, and one that is given away within its pool.
    FopSpec begin{.type = type_of("upload_begin"),
                  .body = fop::UploadBegin{.name = "up", .slot = kFirstSlot, .mode = 0600},
                  .pool = "cold"};
    REQUIRE(stage.call(begin).status() == fop::Status::kDone);
    const FopSpec give{.type = type_of("set_attributes"),
                       .body = fop::SetAttributes{
                           .fid = bobs, .owner = "carol", .which = fop::SetAttributes::kOwner}};
    REQUIRE(stage.call(give).status() == fop::Status::kDone);
    const auto is_right = [&stage] {
        CHECK(stage.quota_of("fast").whole().used() == Amount{.blocks = 3, .objects = 1});
        CHECK(stage.quota_of("cold").whole().used() == Amount{.blocks = 9, .objects = 3});
        CHECK(stage.quota_of("fast").account_of("alice").used() ==
              Amount{.blocks = 3, .objects = 1});
        CHECK(stage.quota_of("cold").account_of("alice").used() ==
              Amount{.blocks = 4, .objects = 2});
        CHECK(stage.quota_of("cold").account_of("bob").used().is_none());
        CHECK(stage.quota_of("cold").account_of("carol").used() ==
              Amount{.blocks = 5, .objects = 1});
        CHECK(run_check(stage, 0).report.finding_count == 0);
        CHECK(run_check(stage, 1).report.finding_count == 0);
    };
    is_right();

    stage.restart();
    is_right();
    stage.stop();
    stage.start();
    is_right();
    stage.stop();
    // The index is made again from the log.
    stage.index_image() = {};
    stage.start();
    is_right();
    CHECK(found(stage, "cold", "one") == cold);
    CHECK(found(stage, "fast", "one") == fast);
}

TEST_CASE("reqh tape pool: names are unique in a pool", "[reqh]") {
    StoreStage stage(with_cold());
    const fop::Fid fast = create(stage, "fast", "one");
    const fop::Fid cold = create(stage, "cold", "one");
    CHECK(found(stage, "fast", "one") == fast);
    CHECK(found(stage, "cold", "one") == cold);

    // Taken in fast, free in cold.
    create(stage, "fast", "two");
    REQUIRE(stage.call(rename_to(cold, "two", true), 1).status() == fop::Status::kDone);
    CHECK(listed(stage, "fast") == std::vector<std::string>{"one", "two"});
    CHECK(listed(stage, "cold") == std::vector<std::string>{"two"});
    CHECK(stage.call(lookup("cold", "one")).status() == fop::Status::kNotFound);

    // Taken in cold.
    const fop::Fid other = create(stage, "cold", "three", kFirstSlot + 1);
    CHECK(stage.call(rename_to(other, "two", true)).status() == fop::Status::kExists);
    REQUIRE(stage.call(rename_to(other, "two")).status() == fop::Status::kDone);
    stage.run_for(5s);
    CHECK(found(stage, "cold", "two") == other);
    CHECK(stage.call({.type = type_of("stat"), .body = fop::Stat{.fid = cold}}).status() ==
          fop::Status::kNotFound);
    REQUIRE(stage.call(remove(other)).status() == fop::Status::kDone);
    CHECK(listed(stage, "cold").empty());
    CHECK(listed(stage, "fast") == std::vector<std::string>{"one", "two"});
}

TEST_CASE("reqh tape pool: an upload of it takes a name of it", "[reqh]") {
    StoreStage stage(with_cold());
    const fop::Fid fast = create(stage, "fast", "one");
    FakeFop& begun = stage.call(
        {.type = type_of("upload_begin"),
         .body =
             fop::UploadBegin{.name = "one", .slot = kFirstSlot, .mode = 0600, .no_replace = true},
         .pool = "cold"});
    REQUIRE(begun.status() == fop::Status::kDone);
    const fop::Fid fid = std::get<fop::UploadBeginReply>(begun.answer->body).fid;
    FakeFop& done =
        stage.call({.type = type_of("upload_commit"), .body = fop::UploadCommit{.fid = fid}});
    INFO(done.answer->words);
    REQUIRE(done.status() == fop::Status::kDone);
    CHECK(found(stage, "cold", "one") == fid);
    CHECK(found(stage, "fast", "one") == fast);
}

TEST_CASE("reqh tape pool: a name may be on a missing disk of its staging", "[reqh]") {
    StoreStage stage(with_cold());
    stage.stop();
    stage.take_away(1);
    stage.start();
    CHECK(stage.call(lookup("cold", "one")).status() == fop::Status::kMediumMissing);
}

TEST_CASE("reqh tape pool: a token for a pool lends what is in that pool", "[reqh]") {
    StoreStage stage(with_cold());
    const std::map<std::string, fop::Fid> fids{{"fast", create(stage, "fast", "one")},
                                               {"cold", create(stage, "cold", "one")}};
    for (const auto& [token_for_pool, mine] : fids) {
        for (const auto& [pool, fid] : fids) {
            for (const std::uint32_t locality : {0U, 1U}) {
                CAPTURE(token_for_pool, pool, locality);
                FopSpec spec{.type = type_of("stat"),
                             .body = fop::Stat{.fid = fid},
                             .token = token_for(fop::kRead, token_for_pool),
                             .rights = {},
                             .principal = "bob"};
                const auto expected =
                    pool == token_for_pool ? fop::Status::kDone : fop::Status::kDenied;
                CHECK(stage.call(spec, locality).status() == expected);
                spec.type = type_of("lookup");
                spec.body = fop::Lookup{.name = "one"};
                spec.pool = pool;
                CHECK(stage.call(spec, locality).status() == expected);
                spec.type = type_of("create");
                spec.body = fop::Create{.slot = kFirstSlot, .mode = 0600};
                spec.token = token_for(fop::kCreate, token_for_pool);
                CHECK(stage.call(spec, locality).status() == expected);
                spec.type = type_of("delete");
                spec.pool = {};
                spec.body = fop::Delete{.fid = fid};
                spec.token = token_for(fop::kDelete, token_for_pool);
                if (expected == fop::Status::kDenied) {
                    CHECK(stage.call(spec, locality).status() == expected);
                }
            }
        }
    }
}

TEST_CASE("reqh tape pool: rules see the pool of the object", "[reqh]") {
    StoreStage stage(with_cold());
    const fop::Fid fast = create(stage, "fast", {});
    const fop::Fid cold = create(stage, "cold", {});
    const auto pool_of_fop = [&stage](std::string_view type, fop::RequestBody body,
                                      std::string_view header, std::uint32_t locality = 0) {
        const fop::Request request{.type = type_of(type), .body = std::move(body)};
        const auto* const pool = pool_of(executor_of(*fop::find_fop_type(type)), request, header,
                                         stage.stores(locality));
        return pool == nullptr ? "none" : pool->name;
    };
    CHECK(pool_of_fop("stat", fop::Stat{.fid = fast}, {}) == "fast");
    CHECK(pool_of_fop("stat", fop::Stat{.fid = cold}, {}) == "cold");
    CHECK(pool_of_fop("stat", fop::Stat{.fid = cold}, "fast") == "cold");
    // Another locality than its home does not have its record.
    CHECK(pool_of_fop("stat", fop::Stat{.fid = cold}, "cold", 1) == "cold");
    CHECK(pool_of_fop("stat", fop::Stat{.fid = cold}, {}, 1) == "fast");
    CHECK(pool_of_fop("create", fop::Create{.slot = kFirstSlot}, "cold") == "cold");
    CHECK(pool_of_fop("create", fop::Create{.slot = kFirstSlot}, {}) == "fast");
    CHECK(pool_of_fop("create", fop::Create{.slot = kFirstSlot}, "slow") == "fast");
}

namespace {

// Takes an object's bytes off its disk, as if they were on a cartridge.
Task<Result<void>> put_on_tape(store::Volume* volume, store::Fid fid, std::uint32_t file) {
    const auto object = volume->map().find(fid);
    if (!object || !object->has_value()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "the object"});
    }
    const std::uint64_t version = (*object)->content_version();
    std::vector<store::Copy> copies{
        store::Copy{.fid = fid,
                    .length = (*object)->size_bytes,
                    .version = version,
                    .cartridge = {.vsn = {'T', 'A', 'P', 'E', '0', '1'}, .generation = 1},
                    .position = {.file = file},
                    .block = file * 100ULL}};
    const core::WaitOptions wait{};
    const auto added = co_await volume->add_copies(std::move(copies), wait);
    if (!added) co_return std::unexpected(added.error());
    const auto released = co_await volume->release(fid, version, wait);
    if (!released) co_return std::unexpected(released.error());
    co_return Result<void>{};
}

// Of a pool whose disks have nothing else than what is on tape.
class OnTape {
public:
    OnTape() : stage(with_cold(10, 100)) {}

    // An object of so many blocks, which count before and after it left its disk.
    fop::Fid object(std::string_view name, std::uint64_t blocks, std::uint32_t file) {
        const fop::Fid fid = create(stage, "cold", name);
        REQUIRE(write_blocks(stage, fid, 0, blocks) == fop::Status::kDone);
        core::Reactor& reactor = stage.stores().parts().reactor;
        const auto put =
            stage.world.run(reactor, put_on_tape(&stage.volume(), objects::store_fid(fid), file));
        REQUIRE((put.has_value() && put->has_value()));
        return fid;
    }
    Amount of(std::string_view owner) { return stage.quota_of("cold").account_of(owner).used(); }
    Amount whole() { return stage.quota_of("cold").whole().used(); }
    std::uint64_t findings() { return run_check(stage).report.finding_count; }

    StoreStage stage;
};

}  // namespace

TEST_CASE("reqh tape pool: an object on tape counts for its owner until it is deleted", "[reqh]") {
    OnTape tape;
    const std::uint64_t free_blocks = tape.stage.volume().space_use().free_blocks;
    const fop::Fid fid = tape.object("one", 20, 1);
    tape.stage.run_for(5s);
    CHECK(tape.stage.volume().space_use().free_blocks + 20 > free_blocks);
    CHECK(tape.of("alice") == Amount{.blocks = 20, .objects = 1});
    CHECK(tape.whole() == Amount{.blocks = 20, .objects = 1});
    // The check counts what the records say, as the next start does.
    CHECK(tape.findings() == 0);

    REQUIRE(tape.stage.call(remove(fid)).status() == fop::Status::kDone);
    CHECK(tape.whole().is_none());
    CHECK(tape.of("alice").is_none());
    CHECK(tape.findings() == 0);
}

TEST_CASE("reqh tape pool: an object on tape is within a quota, and is refused by it", "[reqh]") {
    OnTape tape;
    tape.object("one", 60, 1);
    const fop::Fid other = create(tape.stage, "cold", "other");
    CHECK(write_blocks(tape.stage, other, 0, 41) == fop::Status::kQuota);
    CHECK(write_blocks(tape.stage, other, 0, 40) == fop::Status::kDone);
}

TEST_CASE("reqh tape pool: an object on tape counts for its new owner", "[reqh]") {
    OnTape tape;
    const fop::Fid fid = tape.object("one", 20, 1);
    FopSpec change{.type = type_of("set_attributes"),
                   .body = fop::SetAttributes{
                       .fid = fid, .owner = "bob", .which = fop::SetAttributes::kOwner}};
    change.rights = fop::kAllRights;
    REQUIRE(tape.stage.call(std::move(change)).status() == fop::Status::kDone);
    CHECK(tape.of("alice").is_none());
    CHECK(tape.of("bob") == Amount{.blocks = 20, .objects = 1});
    CHECK(tape.whole() == Amount{.blocks = 20, .objects = 1});
    CHECK(tape.findings() == 0);
}

TEST_CASE("reqh tape pool: an object on tape that is emptied or replaced counts no more",
          "[reqh]") {
    OnTape tape;
    const fop::Fid emptied = tape.object("emptied", 20, 1);
    tape.object("replaced", 30, 2);
    FakeFop& empty = tape.stage.call(
        {.type = type_of("truncate"), .body = fop::Truncate{.fid = emptied, .size_bytes = 0}});
    REQUIRE(empty.status() == fop::Status::kDone);
    CHECK(tape.whole() == Amount{.blocks = 30, .objects = 2});

    REQUIRE(tape.stage.call(rename_to(emptied, "replaced")).status() == fop::Status::kDone);
    tape.stage.run_for(5s);
    CHECK(tape.whole() == Amount{.blocks = 0, .objects = 1});
    CHECK(tape.findings() == 0);
}

TEST_CASE("reqh tape pool: a check finds a pool's use that is counted wrongly", "[reqh]") {
    StoreStage stage(with_cold());
    create(stage, "fast", "one");
    create(stage, "cold", "one");
    stage.run_for(5s);
    objects::HomeVolume& home = *stage.stores().find(kFirstSlot);
    REQUIRE(run_check(stage).report.finding_count == 0);

    objects::DiskUse::Owner& owner =
        home.use().owner({.pool = objects::pool_id("cold"), .owner = "alice"});
    const Amount wrong{.blocks = 3};
    const auto scope = objects::DiskUse::Scope::kPoolAndOwner;
    REQUIRE(home.use().take(owner, wrong, scope) == objects::DiskUse::Verdict::kTaken);
    const auto status = run_check(stage);
    REQUIRE(status.report.finding_count == 1);
    CHECK(status.report.findings.front().reason ==
          "alice has 0 blocks and 1 objects in pool cold, and 3 and 1 are counted");
    home.use().put_back(owner, wrong, scope);

    home.objects().note_added({}, objects::pool_id("cold"));
    home.objects().note_removed({}, objects::pool_id("fast"));
    const auto mixed_up = run_check(stage);
    REQUIRE(mixed_up.report.finding_count == 2);
    CHECK(std::ranges::any_of(mixed_up.report.findings, [](const auto& finding) {
        return finding.reason == "there are 1 objects of pool cold, and 2 are counted";
    }));
}

TEST_CASE("reqh tape pool swarm: the use of pools and owners is what their objects have",
          "[reqh][swarm]") {
    struct Known {
        std::string pool;
        std::string owner;
        std::uint64_t blocks = 0;  // The object has no holes.
    };
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        CAPTURE(seed);
        StageOptions options = with_cold(100, 100);
        options.seed = seed;
        options.whose_seed = fopd::testing::Replay::Seed::kOfSwarm;
        StoreStage stage(options);
        core::Random random(seed);
        const std::array<std::string, 2> pools{"fast", "cold"};
        const std::array<std::string, 3> names{"a", "b", ""};
        std::map<fop::Fid, Known> book;
        std::map<std::pair<std::string, std::string>, fop::Fid> named;
        const auto used = [&book](const std::string& pool, const std::string& owner) {
            Amount amount;
            for (const auto& [fid, known] : book) {
                if (known.pool != pool || (!owner.empty() && known.owner != owner)) continue;
                amount.blocks += known.blocks;
                ++amount.objects;
            }
            return amount;
        };
        for (unsigned step = 0; step < 60; ++step) {
            const std::uint64_t what = random.below(10);
            if (book.empty() || what < 3) {
                const std::string& pool = pools[random.below(2)];
                const std::string& name = names[random.below(3)];
                const fop::Fid fid = create(stage, pool, name, stage.slot(random.below(2)));
                if (!name.empty()) {
                    const auto full_name = std::pair(pool, name);
                    // What had the name is replaced.
                    if (named.contains(full_name)) book.erase(named[full_name]);
                    named[full_name] = fid;
                }
                book[fid] = {.pool = pool, .owner = "alice"};
                stage.run_for(2s);
            } else {
                auto each = book.begin();
                std::advance(each, random.below(book.size()));
                auto& [fid, known] = *each;
                if (what < 6) {
                    const std::uint64_t more = 1 + random.below(30);
                    const bool fits = used(known.pool, {}).blocks + more <= 100;
                    REQUIRE(write_blocks(stage, fid, known.blocks, more) ==
                            (fits ? fop::Status::kDone : fop::Status::kQuota));
                    if (fits) known.blocks += more;
                } else if (what == 6) {
                    known.blocks /= 2;
                    REQUIRE(stage.call(truncate(fid, known.blocks * kBlock)).status() ==
                            fop::Status::kDone);
                } else if (what == 7) {
                    known.owner = known.owner == "alice" ? "bob" : "alice";
                    const FopSpec give{
                        .type = type_of("set_attributes"),
                        .body = fop::SetAttributes{
                            .fid = fid, .owner = known.owner, .which = fop::SetAttributes::kOwner}};
                    REQUIRE(stage.call(give).status() == fop::Status::kDone);
                } else if (what == 8) {
                    REQUIRE(stage.call(remove(fid)).status() == fop::Status::kDone);
                    std::erase_if(named, [&](const auto& one) { return one.second == fid; });
                    book.erase(each);
                } else {
                    stage.restart();
                }
            }
            for (const std::string& pool : pools) {
                CAPTURE(step, pool);
                REQUIRE(stage.quota_of(pool).whole().used() == used(pool, {}));
                for (const char* owner : {"alice", "bob"}) {
                    REQUIRE(stage.quota_of(pool).account_of(owner).used() == used(pool, owner));
                }
            }
        }
        stage.run_for(5s);
        CHECK(run_check(stage, 0).report.finding_count == 0);
        CHECK(run_check(stage, 1).report.finding_count == 0);
    }
}

}  // namespace fopd::reqh::testing::tape_pools

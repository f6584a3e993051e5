// Goal: the objects of a pool, and those of an owner in it, have no more on all its disks than they
// may, and may have as much again as is given up. Method: a node with two localities and a disk on
// each; what is counted is compared with what a client believes.
// The file is long because of what such a client believes of each kind of change.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/random.h"
#include "fop/listing.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

fop::Status write_status(StoreStage& stage, fop::Fid fid, std::uint64_t first,
                         std::uint64_t blocks) {
    const Bytes bytes = pattern(blocks * objects::kBlock, 1);
    const WriteSpec write(fid, {{.offset = first * objects::kBlock, .length = bytes.size()}},
                          bytes);
    return stage.call(write.spec(WriteSpec::Way::kMemory)).status();
}

}  // namespace

TEST_CASE("reqh quota: use above the quota is refused, on every disk of the pool", "[reqh]") {
    StoreStage stage({.localities = 2, .disks = 2, .quota_blocks = 100});
    const auto one = stage.create("one", kFirstSlot);
    const auto other = stage.create("other", kFirstSlot + 1);
    REQUIRE(write_status(stage, one, 0, 40) == fop::Status::kDone);
    REQUIRE(write_status(stage, other, 0, 60) == fop::Status::kDone);

    REQUIRE(write_status(stage, one, 40, 1) == fop::Status::kQuota);
    REQUIRE(write_status(stage, other, 60, 1) == fop::Status::kQuota);

    REQUIRE(stage.read(other, 0, 60 * objects::kBlock) == pattern(60 * objects::kBlock, 1));
    REQUIRE(stage.all_buffers_are_back());
}

TEST_CASE("reqh quota: what was given up can be had again", "[reqh]") {
    StoreStage stage({.quota_blocks = 100});
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 100) == fop::Status::kDone);
    REQUIRE(write_status(stage, fid, 100, 1) == fop::Status::kQuota);

    FakeFop& cut =
        stage.call({.type = type_of("truncate"),
                    .body = fop::Truncate{.fid = fid, .size_bytes = 50 * objects::kBlock}});
    REQUIRE(cut.status() == fop::Status::kDone);

    REQUIRE(write_status(stage, fid, 50, 50) == fop::Status::kDone);
    REQUIRE(write_status(stage, fid, 100, 1) == fop::Status::kQuota);
}

TEST_CASE("reqh quota: the count is right after a restart", "[reqh]") {
    StoreStage stage({.quota_blocks = 100});
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 99) == fop::Status::kDone);
    stage.restart();

    REQUIRE(write_status(stage, fid, 99, 2) == fop::Status::kQuota);
    REQUIRE(write_status(stage, fid, 99, 1) == fop::Status::kDone);
}

TEST_CASE("reqh quota: at its very end old bytes can still be written over", "[reqh]") {
    StoreStage stage(
        {.quota_blocks = 100, .owner_limits = {{"alice", {.blocks = 100, .objects = 1}}}});
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 100) == fop::Status::kDone);

    REQUIRE(write_status(stage, fid, 0, 100) == fop::Status::kDone);
    REQUIRE(write_status(stage, fid, 40, 60) == fop::Status::kDone);
    REQUIRE(write_status(stage, fid, 40, 61) == fop::Status::kQuota);

    REQUIRE(stage.quota().whole().used() == objects::Amount{.blocks = 100, .objects = 1});
    REQUIRE(stage.all_buffers_are_back());
}

TEST_CASE("reqh quota: an owner has no more than it may, and others what they may", "[reqh]") {
    StoreStage stage({.localities = 2,
                      .disks = 2,
                      .owner_limits = {{"alice", {.blocks = 10, .objects = 2}},
                                       {"bob", {.blocks = 5, .objects = 9}}}});
    const auto one = stage.create("one", kFirstSlot);
    const auto other = stage.create("other", kFirstSlot + 1);
    REQUIRE(write_status(stage, one, 0, 4) == fop::Status::kDone);
    REQUIRE(write_status(stage, other, 0, 6) == fop::Status::kDone);

    const Bytes bytes = pattern(objects::kBlock, 1);
    const WriteSpec more(one, {{.offset = 4 * objects::kBlock, .length = bytes.size()}}, bytes);
    FakeFop& refused = stage.call(more.spec(WriteSpec::Way::kMemory), 1);
    REQUIRE(refused.status() == fop::Status::kQuota);
    REQUIRE(refused.answer->words ==
            "quota of alice in pool fast: 40960 of 40960 bytes used, 4096 more wanted");

    FakeFop& third = stage.call(
        {.type = type_of("create"), .body = fop::Create{.name = "third", .slot = kFirstSlot}});
    REQUIRE(third.status() == fop::Status::kQuota);
    REQUIRE(third.answer->words ==
            "quota of alice in pool fast: 2 of 2 objects used, 1 more wanted");
    FakeFop& bobs = stage.call({.type = type_of("create"),
                                .body = fop::Create{.name = "third", .slot = kFirstSlot},
                                .principal = "bob"});
    REQUIRE(bobs.status() == fop::Status::kDone);
    REQUIRE(stage.quota().account_of("alice").used() ==
            objects::Amount{.blocks = 10, .objects = 2});
    REQUIRE(stage.quota().account_of("bob").used() == objects::Amount{.objects = 1});
    REQUIRE(stage.quota().whole().used() == objects::Amount{.blocks = 10, .objects = 3});
}

TEST_CASE("reqh quota: an upload counts for the user that began it until it is given up",
          "[reqh]") {
    StoreStage stage({.owner_limits = {{"alice", {.blocks = 10, .objects = 2}}},
                      .upkeep = {.interval = 1s, .upload_timeout = 4s}});
    const FopSpec begin{.type = type_of("upload_begin"),
                        .body = fop::UploadBegin{.slot = kFirstSlot, .mode = 0600}};
    REQUIRE(stage.call(begin).status() == fop::Status::kDone);
    REQUIRE(stage.call(begin).status() == fop::Status::kDone);
    FakeFop& refused = stage.call(begin);
    REQUIRE(refused.status() == fop::Status::kQuota);
    REQUIRE(refused.answer->words ==
            "quota of alice in pool fast: 2 of 2 objects used, 1 more wanted");
    stage.restart();
    REQUIRE(stage.call(begin).status() == fop::Status::kQuota);
    stage.run_for(8s);
    REQUIRE(stage.quota().account_of("alice").used() == objects::Amount{});
    REQUIRE(stage.call(begin).status() == fop::Status::kDone);
}

TEST_CASE("reqh quota: an upload that cannot fit is refused before its bytes are sent", "[reqh]") {
    StoreStage stage({.quota_blocks = 100,
                      .owner_limits = {{"alice", {.blocks = 10, .objects = 9}},
                                       {"bob", {.blocks = 1000, .objects = 9}}}});
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 4) == fop::Status::kDone);
    const auto begin = [&stage](const char* principal, std::uint64_t size_bytes) -> FakeFop& {
        return stage.call(
            {.type = type_of("upload_begin"),
             .body = fop::UploadBegin{.size_bytes = size_bytes, .slot = kFirstSlot, .mode = 0600},
             .principal = principal});
    };

    FakeFop& refused = begin("alice", 6 * objects::kBlock + 1);
    CHECK(refused.status() == fop::Status::kQuota);
    CHECK(refused.answer->words ==
          "quota of alice in pool fast: 16384 of 40960 bytes used, 28672 more wanted");
    FakeFop& of_pool = begin("bob", 97 * objects::kBlock);
    CHECK(of_pool.status() == fop::Status::kQuota);
    CHECK(of_pool.answer->words ==
          "quota of all in pool fast: 16384 of 409600 bytes used, 397312 more wanted");

    CHECK(begin("alice", 6 * objects::kBlock).status() == fop::Status::kDone);
    CHECK(begin("bob", 96 * objects::kBlock).status() == fop::Status::kDone);
    // Nothing is taken for what is only declared.
    CHECK(stage.quota().whole().used() == objects::Amount{.blocks = 4, .objects = 3});
}

TEST_CASE("reqh quota: a new owner of an object needs quota for it", "[reqh]") {
    StoreStage stage({.quota_blocks = 8, .owner_limits = {{"bob", {.blocks = 5, .objects = 9}}}});
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 8) == fop::Status::kDone);
    const FopSpec give{.type = type_of("set_attributes"),
                       .body = fop::SetAttributes{
                           .fid = fid, .owner = "bob", .which = fop::SetAttributes::kOwner}};

    REQUIRE(stage.call(give).status() == fop::Status::kQuota);
    REQUIRE(stage.quota().account_of("alice").used() == objects::Amount{.blocks = 8, .objects = 1});
    stage.quota().account_of("bob").set_limit({.blocks = 8, .objects = 1});
    REQUIRE(stage.call(give).status() == fop::Status::kDone);

    REQUIRE(stage.quota().account_of("alice").used() == objects::Amount{});
    REQUIRE(stage.quota().account_of("bob").used() == objects::Amount{.blocks = 8, .objects = 1});
    REQUIRE(stage.quota().whole().used() == objects::Amount{.blocks = 8, .objects = 1});
    REQUIRE(stage.call({.type = type_of("delete"), .body = fop::Delete{.fid = fid}}).status() ==
            fop::Status::kDone);
    REQUIRE(stage.quota().whole().used() == objects::Amount{});
}

TEST_CASE("reqh quota: a lowered limit removes nothing, and allows changes of existing blocks",
          "[reqh]") {
    StoreStage stage;
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 10) == fop::Status::kDone);
    stage.quota().account_of("alice").set_limit({.blocks = 4, .objects = 0});

    REQUIRE(write_status(stage, fid, 0, 10) == fop::Status::kDone);
    REQUIRE(write_status(stage, fid, 10, 1) == fop::Status::kQuota);
    REQUIRE(stage.call(truncate(fid, 3 * objects::kBlock)).status() == fop::Status::kDone);
    REQUIRE(write_status(stage, fid, 3, 1) == fop::Status::kDone);
    REQUIRE(stage.read(fid, 0, objects::kBlock) == pattern(objects::kBlock, 1));
}

TEST_CASE("reqh quota: an administrator sees everybody, others themselves", "[reqh]") {
    StoreStage stage({.owner_limits = {{"carol", {.blocks = 7, .objects = 8}}}});
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 2) == fop::Status::kDone);
    FopSpec ask{.type = type_of("quota"), .body = fop::Quota{}, .pool = "fast"};

    FakeFop& all = stage.call(ask);
    const auto everybody = fop::read_quotas(all.answer->payload);
    REQUIRE(everybody.has_value());
    REQUIRE(everybody->size() == 3);
    CHECK((*everybody)[0] == fop::QuotaEntry{.used_bytes = 2 * objects::kBlock,
                                             .used_objects = 1,
                                             .whose = fop::QuotaEntry::Whose::kPool,
                                             .pool = "fast"});
    CHECK((*everybody)[1] == fop::QuotaEntry{.used_bytes = 2 * objects::kBlock,
                                             .used_objects = 1,
                                             .pool = "fast",
                                             .owner = "alice"});
    CHECK((*everybody)[2] == fop::QuotaEntry{.limit_bytes = 7 * objects::kBlock,
                                             .limit_objects = 8,
                                             .pool = "fast",
                                             .owner = "carol"});
    CHECK(std::get<fop::QuotaReply>(all.answer->body).end);

    ask.principal = "carol";
    ask.rights = fop::kRead;
    const auto own = fop::read_quotas(stage.call(ask).answer->payload);
    REQUIRE(own.has_value());
    REQUIRE(own->size() == 1);
    CHECK(own->front().owner == "carol");
    ask.body = fop::Quota{.cursor = "fast\ncarol"};
    CHECK(stage.call(ask).answer->payload.empty());
}

TEST_CASE("reqh quota: whoever asks in a name that has nothing leaves no account behind",
          "[reqh]") {
    StoreStage stage;
    const auto has_account = [&stage](const char* owner) {
        return &stage.quota().look_at(owner) != &stage.quota().look_at("nobody");
    };
    // Clients without a key may each claim another name.
    FopSpec ask{.type = type_of("quota"),
                .body = fop::Quota{},
                .pool = "fast",
                .rights = fop::kRead,
                .principal = "mallory",
                .kind = fop::AuthKind::kNone};

    FakeFop& shown = stage.call(ask);
    const auto own = fop::read_quotas(shown.answer->payload);
    REQUIRE(own.has_value());
    REQUIRE(own->size() == 1);
    CHECK(own->front() == fop::QuotaEntry{.pool = "fast", .owner = "mallory"});
    ask.body = fop::Quota{.wanted_bytes = objects::kBlock};
    CHECK(stage.call(ask).status() == fop::Status::kDone);
    CHECK_FALSE(has_account("mallory"));

    stage.create("one");
    CHECK(has_account("alice"));
}

TEST_CASE("reqh quota: whether bytes would fit is compared with what counts for the caller",
          "[reqh]") {
    StoreStage stage({.quota_blocks = 100,
                      .owner_limits = {{"root", {.blocks = 10, .objects = 9}},
                                       {"bob", {.blocks = 1000, .objects = 9}}},
                      .cold_quota_blocks = 30});
    stage.quota_of("cold").account_of("root").set_limit({.blocks = 20, .objects = 9});
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 4) == fop::Status::kDone);
    struct Asker {
        std::string principal = "root";
        fop::Rights rights = fop::kAllRights;
        std::string user{};
    };
    const auto ask = [&stage](std::string pool, std::uint64_t bytes,
                              const Asker& asker = {}) -> FakeFop& {
        return stage.call({.type = type_of("quota"),
                           .body = fop::Quota{.wanted_bytes = bytes},
                           .pool = std::move(pool),
                           .user = asker.user,
                           .rights = asker.rights,
                           .principal = asker.principal});
    };
    const Asker bob{.principal = "bob", .rights = fop::kWrite};

    FakeFop& fits = ask("fast", 10 * objects::kBlock);
    CHECK(fits.status() == fop::Status::kDone);
    CHECK(fits.answer->payload.empty());
    CHECK(std::get<fop::QuotaReply>(fits.answer->body) ==
          fop::QuotaReply{.end = true, .compared = true});
    // An administrator, whose list has all owners, has a quota of its own.
    FakeFop& own = ask("fast", 10 * objects::kBlock + 1);
    CHECK(own.status() == fop::Status::kQuota);
    CHECK(own.answer->words ==
          "quota of root in pool fast: 0 of 40960 bytes used, 45056 more wanted");
    FakeFop& on_tape = ask("cold", 21 * objects::kBlock);
    CHECK(on_tape.status() == fop::Status::kQuota);
    CHECK(on_tape.answer->words ==
          "quota of root in pool cold: 0 of 81920 bytes used, 86016 more wanted");
    CHECK(ask("cold", 20 * objects::kBlock).status() == fop::Status::kDone);

    // Others are compared with the pool, too, though their list does not show it.
    FakeFop& of_pool = ask("fast", 97 * objects::kBlock, bob);
    CHECK(of_pool.status() == fop::Status::kQuota);
    CHECK(of_pool.answer->words ==
          "quota of all in pool fast: 16384 of 409600 bytes used, 397312 more wanted");
    CHECK(ask("fast", 96 * objects::kBlock, bob).status() == fop::Status::kDone);
    CHECK(ask("cold", 31 * objects::kBlock, bob).status() == fop::Status::kQuota);
    // What root stores for bob counts for bob.
    CHECK(ask("fast", 96 * objects::kBlock, {.user = "bob"}).status() == fop::Status::kDone);
    CHECK(ask("none", 1, bob).status() == fop::Status::kWrongPool);
    // The default pool.
    CHECK(ask({}, 97 * objects::kBlock, bob).status() == fop::Status::kQuota);
    // Nothing is taken for a question.
    CHECK(stage.quota().whole().used() == objects::Amount{.blocks = 4, .objects = 1});
}

TEST_CASE("reqh quota: whether objects would fit is compared, with bytes and without", "[reqh]") {
    StoreStage stage({.quota_blocks = 100,
                      .owner_limits = {{"alice", {.blocks = 10, .objects = 3}},
                                       {"bob", {.blocks = 1000, .objects = 1000}}}});
    stage.create("one");
    const auto ask = [&stage](fop::Quota body, std::string principal = "alice") -> FakeFop& {
        return stage.call({.type = type_of("quota"),
                           .body = body,
                           .pool = "fast",
                           .rights = fop::kWrite,
                           .principal = std::move(principal)});
    };

    FakeFop& fits = ask({.wanted_objects = 2});
    CHECK(fits.status() == fop::Status::kDone);
    CHECK(fits.answer->payload.empty());
    CHECK(std::get<fop::QuotaReply>(fits.answer->body) ==
          fop::QuotaReply{.end = true, .compared = true});
    FakeFop& refused = ask({.wanted_objects = 3});
    CHECK(refused.status() == fop::Status::kQuota);
    CHECK(refused.answer->words ==
          "quota of alice in pool fast: 1 of 3 objects used, 3 more wanted");
    CHECK(ask({.wanted_bytes = 10 * objects::kBlock, .wanted_objects = 2}).status() ==
          fop::Status::kDone);
    CHECK(ask({.wanted_bytes = 10 * objects::kBlock, .wanted_objects = 3}).status() ==
          fop::Status::kQuota);
    CHECK(ask({.wanted_bytes = 10 * objects::kBlock + 1, .wanted_objects = 2}).status() ==
          fop::Status::kQuota);
    CHECK(ask({.wanted_objects = ~std::uint64_t{0}}).status() == fop::Status::kQuota);

    // The pool may have a limit of its own.
    stage.quota().whole().set_limit({.blocks = 100, .objects = 5});
    CHECK(ask({.wanted_objects = 4}, "bob").status() == fop::Status::kDone);
    FakeFop& of_pool = ask({.wanted_objects = 5}, "bob");
    CHECK(of_pool.status() == fop::Status::kQuota);
    CHECK(of_pool.answer->words == "quota of all in pool fast: 1 of 5 objects used, 5 more wanted");
    CHECK(stage.quota().whole().used() == objects::Amount{.objects = 1});
}

namespace {

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What somebody believes who has seen every answer.
class QuotaHistory {
public:
    explicit QuotaHistory(std::uint64_t seed)
        : random_(seed),
          stage_({.localities = 2,
                  .disks = 2,
                  .seed = seed,
                  .quota_blocks = 260,
                  .owner_limits = limits(),
                  .sweep = seed % 2 == 0 ? store::SweepOptions{.extents_a_turn = 1, .pause = 1ms}
                                         : store::SweepOptions{},
                  .whose_seed = fopd::testing::Replay::Seed::kOfSwarm}) {}

    void run() {
        for (unsigned step = 0; step < 120; ++step) {
            CAPTURE(step);
            do_something();
            compare();
        }
        REQUIRE(stage_.call({.type = type_of("sync"), .body = fop::Sync{}}).status() ==
                fop::Status::kDone);
        if (random_.below(2) == 0) {
            stage_.restart();
        } else {
            stage_.stop();
            stage_.start();
        }
        compare();
        for (unsigned step = 0; step < 30; ++step) {
            CAPTURE(step);
            do_something();
            compare();
        }
    }

private:
    struct Thing {
        std::string owner;
        std::string name;
        std::set<std::uint64_t> blocks;
        std::uint64_t size_bytes = 0;
        bool is_upload = false;
    };

    static std::map<std::string, objects::Amount> limits() {
        return {{"alice", {.blocks = 100, .objects = 4}},
                {"bob", {.blocks = objects::QuotaAccount::kUnlimited, .objects = 3}},
                {"carol", {.blocks = 60, .objects = objects::QuotaAccount::kUnlimited}}};
    }
    std::string somebody() {
        static const std::vector<std::string> kAll{"alice", "bob", "carol", "dave"};
        return kAll[random_.below(kAll.size())];
    }
    objects::Amount used_by(const std::string& owner) const {
        objects::Amount sum;
        for (const auto& [fid, each] : things_) {
            if (!owner.empty() && each.owner != owner) continue;
            sum.blocks += each.blocks.size();
            ++sum.objects;
        }
        return sum;
    }
    bool may_have(const std::string& owner, objects::Amount more, bool in_pool = true) const {
        const auto limited = limits();
        const auto limit = limited.find(owner);
        const objects::Amount has = used_by(owner);
        if (limit != limited.end() &&
            ((more.blocks > 0 && has.blocks + more.blocks > limit->second.blocks) ||
             (more.objects > 0 && has.objects + more.objects > limit->second.objects))) {
            return false;
        }
        return !in_pool || more.blocks == 0 || used_by({}).blocks + more.blocks <= 260;
    }
    // The pool's limit is of blocks alone.
    void expect(FakeFop& fop, bool is_allowed) {
        INFO(fop.answer->words);
        REQUIRE(fop.status() == (is_allowed ? fop::Status::kDone : fop::Status::kQuota));
    }
    void compare() {
        // What was replaced is removed a little later.
        stage_.run_for(200ms);
        for (const char* owner : {"alice", "bob", "carol", "dave"}) {
            CAPTURE(owner);
            const objects::Amount used = stage_.quota().account_of(owner).used();
            const objects::Amount believed = used_by(owner);
            CHECK(used.blocks == believed.blocks);
            REQUIRE(used.objects == believed.objects);
        }
        REQUIRE(stage_.quota().whole().used() == used_by({}));
    }

    void do_something() {
        const std::uint64_t what = random_.below(20);
        if (what < 4 || things_.empty()) return create();
        auto thing = things_.begin();
        std::advance(thing, random_.below(things_.size()));
        if (what < 9) return write(thing->first, thing->second);
        if (what < 11) return write_at_once();
        if (what < 12 && thing->second.is_upload) return commit(thing->first, thing->second);
        if (what < 14) return remove(thing->first);
        if (thing->second.is_upload) return;
        if (what < 16) return cut(thing->first, thing->second);
        if (what < 18) return make_hole(thing->first, thing->second);
        give(thing->first, thing->second);
    }

    void create() {
        const std::string owner = somebody();
        const bool is_upload = random_.below(3) == 0;
        const bool is_named = !is_upload && random_.below(2) == 0;
        const std::string name = is_named ? "n" + std::to_string(random_.below(3)) : "";
        const std::uint16_t slot = stage_.slot(random_.below(2));
        FopSpec spec{.type = type_of("create"),
                     .body = fop::Create{.name = name, .slot = slot, .mode = 0600},
                     .principal = owner};
        if (is_upload) spec.type = type_of("upload_begin");
        if (is_upload) spec.body = fop::UploadBegin{.slot = slot, .mode = 0600};
        FakeFop& fop = stage_.call(spec, static_cast<std::uint32_t>(random_.below(2)));
        const bool is_allowed = may_have(owner, {.objects = 1});
        expect(fop, is_allowed);
        if (!is_allowed) return;
        if (is_named) {
            std::erase_if(things_, [&](const auto& each) { return each.second.name == name; });
        }
        const fop::Fid fid = is_upload ? std::get<fop::UploadBeginReply>(fop.answer->body).fid
                                       : std::get<fop::CreateReply>(fop.answer->body).fid;
        things_[fid] = {.owner = owner, .name = name, .blocks = {}, .is_upload = is_upload};
    }

    struct Blocks {
        fop::Range range{};
        std::set<std::uint64_t> touched;
    };
    Blocks some_blocks(bool whole) {
        Blocks blocks{.range = {.offset = random_.below(60) * objects::kBlock,
                                .length = (1 + random_.below(40)) * objects::kBlock},
                      .touched = {}};
        if (!whole) blocks.range.offset += random_.below(objects::kBlock);
        for (std::uint64_t at = blocks.range.offset / objects::kBlock;
             at * objects::kBlock < blocks.range.end(); ++at) {
            blocks.touched.insert(at);
        }
        return blocks;
    }
    static objects::Amount growth(const Thing& thing, const Blocks& blocks) {
        const auto is_new = [&](std::uint64_t each) { return !thing.blocks.contains(each); };
        return {.blocks =
                    static_cast<std::uint64_t>(std::ranges::count_if(blocks.touched, is_new))};
    }
    static void grow(Thing& thing, const Blocks& blocks) {
        thing.blocks.insert(blocks.touched.begin(), blocks.touched.end());
        thing.size_bytes = std::max(thing.size_bytes, blocks.range.end());
    }
    void write(fop::Fid fid, Thing& thing) {
        const Blocks blocks = some_blocks(thing.is_upload);
        const Bytes bytes = pattern(blocks.range.length, 1);
        const WriteSpec write(fid, {blocks.range}, bytes);
        FopSpec spec =
            write.spec(WriteSpec::Way::kMemory, random_.below(2) == 0 ? fop::Durability::kDurable
                                                                      : fop::Durability::kBuffered);
        const auto checksums = checksums_of({blocks.range}, bytes);
        if (thing.is_upload) {
            spec.type = type_of("upload_write");
            spec.principal = thing.owner;
            fop::UploadWrite body{
                .fid = fid,
                .range = blocks.range,
                .checksums = fop::List<std::uint32_t>(checksums.data(), checksums.size())};
            body.source.emplace();
            spec.body = body;
        }
        FakeFop& fop = stage_.call(spec, static_cast<std::uint32_t>(random_.below(2)));
        const bool is_allowed = may_have(thing.owner, growth(thing, blocks));
        expect(fop, is_allowed);
        if (is_allowed) grow(thing, blocks);
    }
    // Who of them is refused is nobody's promise, but that there is never more than may be.
    void write_at_once() {
        struct Sent {
            Thing* thing;
            Blocks blocks;
            WriteSpec write;
            FakeFop* fop = nullptr;
        };
        std::vector<Sent> all;
        for (auto& [fid, thing] : things_) {
            if (thing.is_upload) continue;
            Blocks blocks = some_blocks(false);
            const Bytes bytes = pattern(blocks.range.length, 1);
            all.push_back({.thing = &thing,
                           .blocks = blocks,
                           .write = WriteSpec(fid, {blocks.range}, bytes)});
        }
        std::uint32_t locality = 0;
        for (Sent& each : all) {
            each.fop = &stage_.send(each.write.spec(WriteSpec::Way::kMemory), locality++ % 2);
        }
        const auto has_ended = [](const Sent& each) { return each.fop->answer.has_value(); };
        while (!std::ranges::all_of(all, has_ended)) {
            REQUIRE(stage_.world.step());
            REQUIRE(stage_.quota().whole().used().blocks <= 260);
            REQUIRE(stage_.quota().account_of("alice").used().blocks <= 100);
        }
        for (const Sent& each : all) {
            if (each.fop->status() == fop::Status::kDone) {
                grow(*each.thing, each.blocks);
            } else {
                REQUIRE(each.fop->status() == fop::Status::kQuota);
            }
        }
    }
    void commit(fop::Fid fid, Thing& thing) {
        const FopSpec spec{.type = type_of("upload_commit"),
                           .body = fop::UploadCommit{.fid = fid,
                                                     .size_bytes = thing.size_bytes,
                                                     .blocks = thing.blocks.size()},
                           .principal = thing.owner};
        expect(stage_.call(spec), true);
        thing.is_upload = false;
    }
    void remove(fop::Fid fid) {
        const Thing& thing = things_[fid];
        FopSpec spec{
            .type = type_of("delete"), .body = fop::Delete{.fid = fid}, .principal = thing.owner};
        if (thing.is_upload) {
            spec.type = type_of("upload_abort");
            spec.body = fop::UploadAbort{.fid = fid};
        }
        expect(stage_.call(spec), true);
        things_.erase(fid);
    }
    void cut(fop::Fid fid, Thing& thing) {
        const std::uint64_t size = random_.below(80 * objects::kBlock);
        expect(stage_.call(truncate(fid, size)), true);
        std::erase_if(thing.blocks,
                      [size](std::uint64_t each) { return each * objects::kBlock >= size; });
        thing.size_bytes = size;
    }
    void make_hole(fop::Fid fid, Thing& thing) {
        const fop::Range range = some_blocks(false).range;
        expect(stage_.call(punch(fid, range)), true);
        const bool to_the_end = range.end() >= thing.size_bytes;
        std::erase_if(thing.blocks, [&](std::uint64_t each) {
            return each * objects::kBlock >= range.offset &&
                   (to_the_end || (each + 1) * objects::kBlock <= range.end());
        });
    }
    void give(fop::Fid fid, Thing& thing) {
        const std::string owner = somebody();
        const FopSpec spec{.type = type_of("set_attributes"),
                           .body = fop::SetAttributes{
                               .fid = fid, .owner = owner, .which = fop::SetAttributes::kOwner}};
        const objects::Amount all{.blocks = thing.blocks.size(), .objects = 1};
        const bool is_allowed = owner == thing.owner || may_have(owner, all, false);
        expect(stage_.call(spec), is_allowed);
        if (is_allowed) thing.owner = owner;
    }

    core::Random random_;
    StoreStage stage_;
    std::map<fop::Fid, Thing> things_;
};

}  // namespace

TEST_CASE("reqh quota: the count always equals the use", "[reqh][swarm]") {
    const std::uint64_t first = number_in("FOPD_SEED", 1);
    const std::uint64_t count = number_in("FOPD_SWARM_SEEDS", 10);
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        CAPTURE(seed);
        QuotaHistory history(seed);
        history.run();
    }
}

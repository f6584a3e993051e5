#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "fop/listing.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing {

namespace {

using Way = WriteSpec::Way;

// The same facts hold whether an object's home, its name's and the session's are one or several.
StageOptions few_or_many() {
    const bool many = GENERATE(false, true);
    return {.localities = many ? 3U : 1U, .disks = many ? 3U : 1U};
}

FopSpec create(std::string_view name, std::uint16_t slot = kFirstSlot) {
    return {.type = type_of("create"),
            .body = fop::Create{.name = name, .slot = slot, .mode = 0600}};
}
FopSpec create_new(std::string_view name, std::uint16_t slot = kFirstSlot) {
    return {.type = type_of("create"),
            .body = fop::Create{.name = name, .slot = slot, .mode = 0600, .no_replace = true}};
}
FopSpec lookup(std::string_view name) {
    return {.type = type_of("lookup"), .body = fop::Lookup{.name = name}};
}
FopSpec rename(fop::Fid fid, std::string_view name, std::string_view from = {},
               bool no_replace = false) {
    return {.type = type_of("rename"),
            .body = fop::Rename{.fid = fid, .from = from, .name = name, .no_replace = no_replace}};
}
FopSpec removal(fop::Fid fid, std::string_view from = {}) {
    return {.type = type_of("delete"), .body = fop::Delete{.fid = fid, .from = from}};
}
FopSpec stat(fop::Fid fid) {
    return {.type = type_of("stat"), .body = fop::Stat{.fid = fid}};
}

// A name whose part is on that locality.
std::string name_at(const StoreStage& node, std::uint32_t locality) {
    const std::uint32_t count = node.options.localities;
    for (int i = 0;; ++i) {
        std::string name = "name-" + std::to_string(locality) + "-" + std::to_string(i);
        const store::NameRef ref{.pool = objects::pool_id("fast"), .name = name};
        if (store::shard_of(ref, count) == locality) return name;
    }
}

fop::Fid found(const FakeFop& fop) {
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    return std::get<fop::LookupReply>(fop.answer->body).attributes.fid;
}

}  // namespace

TEST_CASE("reqh names: an object is found by its name, from everywhere, over restarts", "[reqh]") {
    StoreStage node(few_or_many());
    const std::uint32_t last = node.options.localities - 1;
    const fop::Fid fid = node.create("the name", static_cast<std::uint16_t>(kFirstSlot + last));
    node.write(fid, 0, pattern(100, 1));
    CHECK(found(node.call(lookup("the name"))) == fid);
    CHECK(found(node.call(lookup("the name"), last)) == fid);
    CHECK(node.call(lookup("another")).status() == fop::Status::kNotFound);
    node.restart();
    FakeFop& fop = node.call(lookup("the name"), last);
    CHECK(found(fop) == fid);
    const auto& attributes = std::get<fop::LookupReply>(fop.answer->body).attributes;
    CHECK(attributes.name == "the name");
    CHECK(attributes.size_bytes == 100);
    node.stop();
    node.start();
    CHECK(found(node.call(lookup("the name"))) == fid);
}

TEST_CASE("reqh names: a second create of a name replaces the first object, which is removed",
          "[reqh]") {
    StoreStage node(few_or_many());
    const std::uint32_t last = node.options.localities - 1;
    const fop::Fid first = node.create("name");
    node.write(first, 0, pattern(objects::kBlock, 1));
    CHECK(node.call(create_new("name")).status() == fop::Status::kExists);
    const fop::Fid second = node.create("name", static_cast<std::uint16_t>(kFirstSlot + last));
    CHECK(second != first);
    CHECK(found(node.call(lookup("name"))) == second);
    node.run_for(1s);
    CHECK(node.call(stat(first)).status() == fop::Status::kNotFound);
    node.restart();
    CHECK(found(node.call(lookup("name"))) == second);
}

TEST_CASE("reqh names: of many creates of one name, one succeeds", "[reqh]") {
    StoreStage node(few_or_many());
    std::vector<FakeFop*> fops;
    for (std::uint32_t i = 0; i < 200; ++i) {
        const auto slot = static_cast<std::uint16_t>(kFirstSlot + i % node.options.disks);
        fops.push_back(&node.send(create_new("name", slot), i % node.options.localities));
    }
    std::size_t winners = 0;
    fop::Fid winner{};
    for (FakeFop* const fop : fops) {
        node.wait_for(*fop);
        if (fop->status() == fop::Status::kDone) {
            ++winners;
            winner = std::get<fop::CreateReply>(fop->answer->body).fid;
        } else {
            CHECK(fop->status() == fop::Status::kExists);
        }
    }
    CHECK(winners == 1);
    CHECK(found(node.call(lookup("name"))) == winner);
}

TEST_CASE("reqh names: the client and number of another principal are another request", "[reqh]") {
    StoreStage node;
    FopSpec spec{.type = type_of("create"),
                 .body = fop::Create{.name = "mine", .slot = kFirstSlot},
                 .number = 77};
    spec.client.fill(std::byte{7});
    const auto mine = std::get<fop::CreateReply>(node.call(spec).answer->body);
    FopSpec guess = spec;
    guess.principal = "mallory";
    guess.body = fop::Create{.name = "hers", .slot = kFirstSlot};

    FakeFop& hers = node.call(guess);

    REQUIRE(hers.status() == fop::Status::kDone);
    CHECK(std::get<fop::CreateReply>(hers.answer->body).fid != mine.fid);
    node.restart();
    CHECK(std::get<fop::CreateReply>(node.call(spec).answer->body).fid == mine.fid);
    CHECK(std::get<fop::CreateReply>(node.call(guess).answer->body).fid ==
          std::get<fop::CreateReply>(hers.answer->body).fid);
}

TEST_CASE("reqh names: a create that is asked for again makes one object", "[reqh]") {
    StoreStage node(few_or_many());
    FopSpec spec = create("name");
    spec.number = 42;
    const auto first = std::get<fop::CreateReply>(node.call(spec).answer->body);
    const auto again = std::get<fop::CreateReply>(node.call(spec).answer->body);
    CHECK(again.fid == first.fid);
    node.restart();
    const auto after_restart = std::get<fop::CreateReply>(node.call(spec).answer->body);
    CHECK(after_restart.fid == first.fid);
    CHECK(found(node.call(lookup("name"))) == first.fid);
}

TEST_CASE("reqh names: an object is replaced only by a caller that may write to it", "[reqh]") {
    StoreStage node(few_or_many());
    const std::uint32_t last = node.options.localities - 1;
    const fop::Fid fid = node.create("name", static_cast<std::uint16_t>(kFirstSlot + last));
    FopSpec by_bob = create("name");
    by_bob.principal = "bob";
    by_bob.rights = fop::kCreate;
    CHECK(node.call(by_bob).status() == fop::Status::kDenied);
    const fop::Fid other = node.create("other");
    FopSpec rename_by_bob = rename(other, "name");
    rename_by_bob.principal = "bob";
    rename_by_bob.rights = fop::kWrite;
    CHECK(node.call(rename_by_bob).status() == fop::Status::kDenied);
    CHECK(found(node.call(lookup("name"))) == fid);
}

TEST_CASE("reqh names: an object takes another name, and leaves its own", "[reqh]") {
    StoreStage node(few_or_many());
    const std::uint32_t last = node.options.localities - 1;
    const auto far_slot = static_cast<std::uint16_t>(kFirstSlot + last);
    const fop::Fid fid = node.create("a", far_slot);
    CHECK(node.call(rename(fid, "b", "x")).status() == fop::Status::kNotFound);
    FopSpec spec = rename(fid, "b", "a");
    spec.number = 4711;
    CHECK(node.call(spec).status() == fop::Status::kDone);
    CHECK(node.call(spec).status() == fop::Status::kDone);
    CHECK(node.call(lookup("a")).status() == fop::Status::kNotFound);
    CHECK(found(node.call(lookup("b"))) == fid);

    const fop::Fid unnamed = node.create();
    CHECK(node.call(rename(unnamed, "b", {}, true)).status() == fop::Status::kExists);
    CHECK(node.call(rename(unnamed, "b")).status() == fop::Status::kDone);
    CHECK(found(node.call(lookup("b"))) == unnamed);
    node.run_for(1s);
    CHECK(node.call(stat(fid)).status() == fop::Status::kNotFound);
    CHECK(node.call(rename(unnamed, "b")).status() == fop::Status::kDone);
    node.restart();
    CHECK(found(node.call(lookup("b"))) == unnamed);
    CHECK(node.call(lookup("a")).status() == fop::Status::kNotFound);
}

// Messages between localities: one to hold a name at its part, and one with the change, which ends
// the hold, or to give the hold back. Each goes there and back.
constexpr std::uint64_t kMessagesOfRename = 4;
constexpr std::uint64_t kThereAndBack = 2;

TEST_CASE("reqh names: a rename takes four messages between localities, two for each name",
          "[reqh]") {
    StoreStage node({.localities = 3, .disks = 3});
    const std::string from = name_at(node, 1);
    const std::string to = name_at(node, 2);
    const fop::Fid fid = node.create(from);
    node.run_for(1s);
    const std::uint64_t before = node.message_count();

    REQUIRE(node.call(rename(fid, to)).status() == fop::Status::kDone);

    CHECK(node.message_count() - before == kThereAndBack * kMessagesOfRename);
    CHECK(node.call(create_new(from)).status() == fop::Status::kDone);
    CHECK(node.call(create_new(to)).status() == fop::Status::kExists);
    CHECK(node.call(removal(fid, to)).status() == fop::Status::kDone);
    CHECK(node.call(create_new(to)).status() == fop::Status::kDone);
}

TEST_CASE("reqh names: a refused rename releases both names, with as many messages", "[reqh]") {
    StoreStage node({.localities = 3, .disks = 3});
    const std::string from = name_at(node, 1);
    const std::string to = name_at(node, 2);
    const fop::Fid fid = node.create(from);
    const fop::Fid other = node.create(to);
    node.run_for(1s);
    const std::uint64_t before = node.message_count();

    REQUIRE(node.call(rename(fid, to, {}, true)).status() == fop::Status::kExists);

    CHECK(node.message_count() - before == kThereAndBack * kMessagesOfRename);
    CHECK(node.call(removal(other)).status() == fop::Status::kDone);
    CHECK(node.call(rename(fid, to, {}, true)).status() == fop::Status::kDone);
    CHECK(node.call(create_new(from)).status() == fop::Status::kDone);
}

TEST_CASE("reqh names: opposite renames do not deadlock", "[reqh]") {
    StoreStage node(few_or_many());
    const fop::Fid one = node.create("one");
    const fop::Fid other =
        node.create("other", static_cast<std::uint16_t>(kFirstSlot + node.options.disks - 1));
    std::vector<FakeFop*> fops;
    for (std::uint32_t i = 0; i < 12; ++i) {
        const std::uint32_t from = i % node.options.localities;
        fops.push_back(&node.send(rename(one, i % 2 == 0 ? "x" : "y"), from));
        fops.push_back(&node.send(rename(other, i % 2 == 0 ? "y" : "x"), from));
    }
    for (FakeFop* const fop : fops) node.wait_for(*fop);
    node.run_for(1s);
    // Who lost its name is gone.
    const bool has_x = node.call(lookup("x")).status() == fop::Status::kDone;
    const bool has_y = node.call(lookup("y")).status() == fop::Status::kDone;
    CHECK((has_x || has_y));
    CHECK(node.call(lookup("one")).status() == fop::Status::kNotFound);
}

TEST_CASE("reqh names: a name is free when its object is gone", "[reqh]") {
    StoreStage node(few_or_many());
    const fop::Fid fid = node.create("name");
    CHECK(node.call(removal(fid, "another")).status() == fop::Status::kNotFound);
    CHECK(node.call(removal(fid, "name")).status() == fop::Status::kDone);
    CHECK(node.call(lookup("name")).status() == fop::Status::kNotFound);
    CHECK(node.call(create_new("name")).status() == fop::Status::kDone);
    node.restart();
    CHECK(found(node.call(lookup("name"))) != fid);
}

TEST_CASE("reqh names: a list goes on from its cursor, in the order of the bytes", "[reqh]") {
    StoreStage node(few_or_many());
    std::vector<std::string> names;
    for (int i = 0; i < 40; ++i) names.push_back("dir/" + std::to_string(1000 + i * 7));
    for (std::size_t i = 0; i < names.size(); ++i) {
        node.create(names[(i * 17) % names.size()],
                    static_cast<std::uint16_t>(kFirstSlot + i % node.options.disks));
    }
    node.create("elsewhere");
    const fop::Fid last = node.create("dir/zzz");
    node.write(last, 0, pattern(777, 1));
    names.push_back("dir/zzz");

    std::vector<std::string> listed;
    std::string cursor;
    for (bool is_end = false; !is_end;) {
        FakeFop& fop = node.call(
            {.type = type_of("list"),
             .body = fop::ListObjects{.prefix = "dir/", .cursor = cursor, .count_max = 7}});
        REQUIRE(fop.status() == fop::Status::kDone);
        const auto entries = fop::read_list(fop.answer->payload);
        REQUIRE(entries.has_value());
        CHECK(entries->size() <= 7);
        for (const fop::ListEntry& entry : *entries) {
            listed.emplace_back(entry.name);
            if (entry.name == "dir/zzz") CHECK(entry.size_bytes == 777);
        }
        const auto& reply = std::get<fop::ListObjectsReply>(fop.answer->body);
        cursor = reply.cursor;
        is_end = reply.end;
    }
    CHECK(listed == names);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh names: a list tells of what one may not read no more than that it is there",
          "[reqh]") {
    StoreStage node(few_or_many());
    const std::uint32_t last = node.options.localities - 1;
    const fop::Fid fid = node.create("hers", static_cast<std::uint16_t>(kFirstSlot + last));
    node.write(fid, 0, pattern(777, 1));
    struct Row {
        fop::Rights rights;
        std::string principal;
        std::string token;
        bool is_told;
    };
    const std::vector<Row> rows{{fop::kRead, "alice", "", true},
                                {fop::kRead, "bob", "", false},
                                {fop::kRead | fop::kAdmin, "bob", "", true},
                                {fop::kRead, "bob", token_for(fop::kWrite), false},
                                {fop::kRead, "bob", token_for(fop::kRead), true}};
    for (const Row& row : rows) {
        CAPTURE(row.principal, row.token, fop::to_text(row.rights));
        FopSpec spec{.type = type_of("list"), .body = fop::ListObjects{}};
        spec.principal = row.principal;
        spec.rights = row.rights;
        spec.token = row.token;

        FakeFop& fop = node.call(spec);

        REQUIRE(fop.status() == fop::Status::kDone);
        const auto entries = fop::read_list(fop.answer->payload);
        REQUIRE(entries->size() == 1);
        CHECK((*entries)[0].name == "hers");
        CHECK((*entries)[0].size_bytes == (row.is_told ? 777 : fop::kSizeUnknown));
        CHECK(((*entries)[0].changed_ns != 0) == row.is_told);
    }
}

TEST_CASE("reqh names: a list goes on whatever changes between its pages", "[reqh]") {
    StoreStage node(few_or_many());
    std::map<std::string, fop::Fid> fids;
    for (int i = 10; i < 40; ++i) {
        const std::string name = "n-" + std::to_string(i);
        fids[name] = node.create(name, node.slot(static_cast<std::uint64_t>(i)));
    }
    const auto remove = [&](const std::string& name) {
        const FopSpec spec{.type = type_of("delete"), .body = fop::Delete{.fid = fids[name]}};
        REQUIRE(node.call(spec).status() == fop::Status::kDone);
    };

    std::vector<std::string> listed;
    std::string cursor;
    for (bool is_end = false; !is_end;) {
        FakeFop& fop =
            node.call({.type = type_of("list"),
                       .body = fop::ListObjects{.prefix = "n-", .cursor = cursor, .count_max = 6}});
        REQUIRE(fop.status() == fop::Status::kDone);
        const auto entries = fop::read_list(fop.answer->payload);
        REQUIRE(entries.has_value());
        for (const fop::ListEntry& entry : *entries) listed.emplace_back(entry.name);
        const auto& reply = std::get<fop::ListObjectsReply>(fop.answer->body);
        const bool is_first = cursor.empty();
        cursor = reply.cursor;
        is_end = reply.end;
        if (!is_first) continue;
        REQUIRE(listed.size() == 6);
        remove("n-15");  // Where it stands.
        remove("n-25");
        node.create("n-10a");
        node.create("n-30a");
        const FopSpec back{.type = type_of("rename"),
                           .body = fop::Rename{.fid = fids["n-39"], .name = "n-35a"}};
        REQUIRE(node.call(back).status() == fop::Status::kDone);
    }

    std::vector<std::string> expected;
    for (int i = 10; i < 39; ++i) {
        if (i != 25) expected.push_back("n-" + std::to_string(i));
        if (i == 30 || i == 35) expected.push_back("n-" + std::to_string(i) + "a");
    }
    CHECK(listed == expected);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh names: a list that fills its reply ends before, and goes on", "[reqh]") {
    StoreStage node;
    std::vector<std::string> names;
    for (int i = 0; i < 100; ++i) names.push_back(std::string(470, 'n') + std::to_string(100 + i));
    for (const std::string& name : names) node.create(name);
    FakeFop& first = node.call({.type = type_of("list"), .body = fop::ListObjects{}});
    const auto page = fop::read_list(first.answer->payload);
    CHECK(page->size() < names.size());
    const auto& reply = std::get<fop::ListObjectsReply>(first.answer->body);
    CHECK_FALSE(reply.end);
    FakeFop& second =
        node.call({.type = type_of("list"), .body = fop::ListObjects{.cursor = reply.cursor}});
    CHECK(std::get<fop::ListObjectsReply>(second.answer->body).end);
    CHECK(page->size() + fop::read_list(second.answer->payload)->size() == names.size());
}

TEST_CASE("reqh names: many lists at once take a step of work each turn, and all end", "[reqh]") {
    constexpr std::size_t kLists = 40;
    StoreStage node({.buffer_count = 2 * kLists});
    for (int i = 0; i < 20; ++i) node.create("n-" + std::to_string(i));
    // Until there is room for all, and they begin together.
    node.handler().set_limits({.max_foms = 1});
    node.send(bulk_echo(1, 1ms));
    for (std::size_t i = 0; i < kLists; ++i) {
        node.send({.type = type_of("list"), .body = fop::ListObjects{}});
    }
    node.handler().set_limits({});
    const auto answered = [&node] {
        return static_cast<std::size_t>(std::ranges::count_if(node.fops, [](const FakeFop& fop) {
            return fop.request().type == type_of("list") && fop.answer.has_value();
        }));
    };

    for (std::size_t before = answered(); before < kLists;) {
        REQUIRE(node.world.step());
        const std::size_t now = answered();
        REQUIRE(now <= before + 1);
        before = now;
    }
    node.run_for(1s);
    REQUIRE(node.all_buffers_are_back());
}

TEST_CASE("reqh names: objects far away are written and read like near ones", "[reqh]") {
    StoreStage node({.localities = 3, .disks = 3});
    const fop::Fid fid = node.create("far", kFirstSlot + 2);
    const Bytes bytes = pattern(700'000, 1);
    node.write(fid, 333, bytes);
    CHECK(node.read(fid, 333, bytes.size()) == bytes);

    // A client that goes away takes its fops with it.
    const WriteSpec slow(fid, {{.offset = 0, .length = objects::kBlock}},
                         pattern(objects::kBlock, 2));
    FopSpec spec = slow.spec(Way::kMemory);
    spec.transfer_time = 1s;
    FakeFop& first = node.send(spec);
    node.run_for(10ms);
    FakeFop& second = node.send(spec);
    node.run_for(10ms);
    second.cancel_source().cancel();
    node.run_for(10ms);
    CHECK(second.status() == fop::Status::kCancelled);
    first.cancel_source().cancel();
    node.wait_for(first);
    CHECK(first.status() == fop::Status::kCancelled);
    CHECK(node.read(fid, 333, bytes.size()) == bytes);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh node: slots and room", "[reqh]") {
    StoreStage node({.localities = 2, .disks = 3});
    FakeFop& slots = node.call({.type = type_of("slots"), .body = fop::Slots{}});
    REQUIRE(slots.status() == fop::Status::kDone);
    const auto entries = fop::read_slots(slots.answer->payload);
    REQUIRE(entries->size() == 3);
    CHECK((*entries)[1].slot == kFirstSlot + 1);
    CHECK((*entries)[1].locality == 1);
    CHECK((*entries)[1].pool == "fast");
    CHECK((*entries)[1].in_default_pool);
    CHECK((*entries)[1].state == fop::ListedSlotState::kOnline);

    const auto room = [&node] {
        FakeFop& fop = node.call({.type = type_of("statfs"), .body = fop::Statfs{}});
        REQUIRE(fop.status() == fop::Status::kDone);
        const auto pools = fop::read_pools(fop.answer->payload);
        CHECK(pools->size() == 2);
        return std::get<fop::StatfsReply>(fop.answer->body);
    };
    const auto before = room();
    const fop::Fid fid = node.create();
    node.write(fid, 0, pattern(1UL << 20, 1));
    const auto after = room();
    CHECK(after.total_bytes == before.total_bytes);
    CHECK(after.used_bytes == before.used_bytes + (1UL << 20));
    CHECK(after.free_bytes + after.used_bytes == after.total_bytes);
    CHECK(after.objects == before.objects + 1);
}

}  // namespace fopd::reqh::testing

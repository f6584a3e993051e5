// Goal: what a client of objects promises: bytes come back as they were written, also over losses
// of the connection and of the server, nothing is done twice, and no buffered write is forgotten.
// Method: a fake store with two localities in the simulated world, which is crashed as it is.
#include "client/object_client.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/client/object_stage.h"

namespace fopd::client::testing {

namespace {

using When = Stage::When;
constexpr auto kDurable = fop::Durability::kDurable;
constexpr auto kBuffered = fop::Durability::kBuffered;

}  // namespace

// -- the ordinary --

TEST_CASE("client objects: a write of any length and offset is read back", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    std::string expected;
    for (const std::size_t length : {1U, 4096U, 12'000U, 70'000U, 3'000'001U}) {
        CAPTURE(length);
        const auto bytes = pattern(length);
        const std::uint64_t offset = expected.size() / 2;
        stage.done(stage.client->write({.fid = fid, .offset = offset, .from = bytes}, kNoWait));
        expected.resize(std::max<std::size_t>(expected.size(), offset + length));
        std::ranges::transform(bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset),
                               [](std::byte each) { return static_cast<char>(each); });
        REQUIRE(stage.read(fid, 0, expected.size() + 10) == expected);
        REQUIRE(stage.read(fid, 3, 9000) ==
                expected.substr(std::min<std::size_t>(3, expected.size()), 9000));
    }
    REQUIRE(stage.read(fid, expected.size() + 5).empty());
    REQUIRE(stage.read(fid, 0, 0).empty());
}

TEST_CASE("client objects: long data travel in several fops", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    const auto bytes = pattern(5U << 20);
    stage.done(stage.client->write({.fid = fid, .offset = 1000, .from = bytes}, kNoWait));
    REQUIRE(stage.store.count("write") == 6);
    stage.done(stage.client->put({.name = "b"}, bytes, kNoWait));
    REQUIRE(stage.store.count("upload_write") == 5);
    REQUIRE(stage.store.find("b")->bytes == bytes);
}

TEST_CASE("client objects: an object's fops go to its locality, one session each", "[client]") {
    Stage stage;
    std::set<std::uint16_t> slots;
    for (const auto* const name : {"a", "b", "c", "d"}) slots.insert(stage.create(name).slot());
    REQUIRE(slots == std::set<std::uint16_t>{1, 2});
    REQUIRE(stage.client->session_count() == 2);
    REQUIRE(stage.life->sessions(0) == 1);
    REQUIRE(stage.life->sessions(1) == 1);
}

TEST_CASE("client objects: names", "[client]") {
    Stage stage;
    ObjectClient& client = *stage.client;
    const fop::Fid fid = stage.create("a");
    REQUIRE(stage.done(client.lookup("", "a", kNoWait)).fid == fid);
    REQUIRE(stage.status(client.create({.name = "a", .no_replace = true}, kNoWait)) ==
            fop::Status::kExists);
    stage.done(client.rename({.fid = fid, .from = "a", .name = "b"}, kNoWait));
    REQUIRE(stage.status(client.lookup("", "a", kNoWait)) == fop::Status::kNotFound);
    REQUIRE(stage.status(client.remove(fid, "a", kNoWait)) == fop::Status::kNotFound);
    REQUIRE(stage.done(client.stat(fid, kNoWait)).name == "b");
    stage.create("c");
    stage.create("d");

    const ObjectPage first = stage.done(client.list({.count_max = 2}, kNoWait));
    REQUIRE(first.entries.size() == 2);
    REQUIRE_FALSE(first.end);
    const ObjectPage second = stage.done(client.list({.cursor = first.cursor}, kNoWait));
    REQUIRE(second.entries.size() == 1);
    REQUIRE(second.entries[0].name == "d");
    REQUIRE(second.end);

    stage.done(client.remove(fid, "b", kNoWait));
    REQUIRE(stage.status(client.stat(fid, kNoWait)) == fop::Status::kNotFound);
    const auto refused = stage.run(client.stat(fid, kNoWait));
    REQUIRE(refused.error().answered);
    REQUIRE(refused.error().words == "the fake store says no");
}

TEST_CASE("client objects: a text that no server would take is named, and not sent", "[client]") {
    Stage stage;
    ObjectClient& client = *stage.client;
    stage.create("a");
    const std::size_t arrived = stage.store.arrived.size();
    const std::string text = GENERATE(std::string(65, 'p'), std::string(256, 'p'), "p\n", "p\xff",
                                      std::string(100'000, 'p'));
    const NewObject in_pool{.name = "b", .pool = text};
    const NewObject of_group{.name = "b", .group = text};
    const auto is_refused = [&stage](auto task, const std::string& what) {
        const auto outcome = stage.run(std::move(task));
        REQUIRE_FALSE(outcome.has_value());
        const Problem& problem = outcome.error();
        INFO(problem.words);
        CHECK(problem.status == fop::Status::kMalformed);
        CHECK_FALSE(problem.answered);
        CHECK(problem.words.starts_with("the " + what + " \"p"));
        CHECK(problem.words.ends_with("at most 64 bytes of UTF-8 without control characters"));
        CHECK(problem.words.size() < 200);
    };

    is_refused(client.lookup(text, "a", kNoWait), "pool");
    is_refused(client.list({.pool = text}, kNoWait), "pool");
    is_refused(client.quota(text, kNoWait), "pool");
    is_refused(client.create(in_pool, kNoWait), "pool");
    is_refused(client.uploads().begin(in_pool, 0, kNoWait), "pool");
    is_refused(client.put(in_pool, pattern(10), kNoWait), "pool");
    is_refused(client.rename({.fid = {.high = 1, .low = 1}, .pool = text, .name = "b"}, kNoWait),
               "pool");
    is_refused(client.lookup("", "a", {.job = text}), "job");
    is_refused(client.put(of_group, pattern(10), kNoWait), "group");
    is_refused(client.set_attributes({.high = 1, .low = 1}, {.owner = text}, kNoWait), "owner");
    REQUIRE(stage.store.arrived.size() == arrived);
}

TEST_CASE("client objects: a prefix that is longer than any name is not sent", "[client]") {
    Stage stage;
    const auto listed =
        stage.run(stage.client->list({.prefix = std::string(20'000, 'p')}, kNoWait));
    REQUIRE_FALSE(listed.has_value());
    REQUIRE(listed.error().words == "the prefix \"" + std::string(24, 'p') +
                                        "...\" is longer than a name may be, 480 bytes");
}

TEST_CASE("client objects: a slot that is full is passed over", "[client]") {
    Stage stage;
    stage.store.full = {1};
    for (const auto* const name : {"a", "b", "c"}) REQUIRE(stage.create(name).slot() == 2);
    REQUIRE(stage.done(stage.client->put({.name = "d"}, pattern(10), kNoWait)).slot() == 2);
    stage.store.full = {1, 2};
    REQUIRE(stage.status(stage.client->create({.name = "e"}, kNoWait)) == fop::Status::kNoSpace);
    REQUIRE(stage.status(stage.client->create({.name = "e", .pool = "other"}, kNoWait)) ==
            fop::Status::kWrongPool);
}

TEST_CASE("client objects: a pool that takes no new objects is named", "[client]") {
    Stage stage;
    stage.store.offline = {1, 2};
    const auto named = stage.run(stage.client->create({.name = "a", .pool = "fast"}, kNoWait));
    const auto unnamed = stage.run(stage.client->create({.name = "a"}, kNoWait));
    REQUIRE_FALSE(named.has_value());
    REQUIRE(named.error().status == fop::Status::kReadOnly);
    REQUIRE(named.error().words == "no disk of pool fast takes new objects now");
    REQUIRE_FALSE(unnamed.has_value());
    REQUIRE(unnamed.error().words == "no disk of the default pool takes new objects now");
}

TEST_CASE("client objects: a slot whose disk is missing is passed over", "[client]") {
    Stage stage;
    stage.store.missing = {1};
    for (int i = 0; i < 4; ++i) {
        REQUIRE(stage.create("created" + std::to_string(i)).slot() == 2);
        const auto put = stage.done(
            stage.client->put({.name = "put" + std::to_string(i)}, pattern(100), kNoWait));
        REQUIRE(put.slot() == 2);
    }
}

TEST_CASE("client objects: what a slot refuses waits for a new table, not for the old one again",
          "[client]") {
    std::vector<Outcome<fop::Fid>> made;
    Stage stage;
    stage.store.offline = {1};
    REQUIRE(stage.create("a").slot() == 2);

    // The slot's locality is heard of before the one that is asked where there is room.
    stage.crash();
    stage.store.away = {0};
    stage.store.missing = {2};
    stage.store.offline = {2};
    stage.world.run_for(10s);
    REQUIRE(stage.life->sessions(0) == 0);
    REQUIRE(stage.life->sessions(1) == 1);
    const auto keep = [](Task<Outcome<fop::Fid>> task, auto* kept) -> Task<void> {
        auto outcome = co_await std::move(task);
        kept->push_back(std::move(outcome));
    };
    for (const auto* const name : {"b", "c", "d"}) {
        stage.reactor->spawn(stage.gate,
                             keep(stage.client->create({.name = name}, kNoWait), &made));
    }
    // Less than the client has patience with a server that lets nobody in.
    stage.world.run_for(5s);
    REQUIRE(stage.store.count("create") == 3);
    REQUIRE(made.empty());

    stage.store.away.clear();
    stage.world.run_for(10s);
    REQUIRE(made.size() == 3);
    for (const auto& each : made) REQUIRE(each.value().slot() == 1);
}

TEST_CASE("client objects: bytes that were changed are not returned", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    for (const std::size_t length : {100U, 100'000U}) {
        stage.done(stage.client->write({.fid = fid, .from = pattern(length)}, kNoWait));
        stage.store.changes_what_is_read = true;
        std::vector<std::byte> into(length);
        REQUIRE(stage.status(stage.client->read(fid, 0, into, kNoWait)) == fop::Status::kCorrupt);
        stage.store.changes_what_is_read = false;
    }
}

TEST_CASE("client objects: a fop that is answered try_again is retried", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.store.try_again = 5;
    stage.write(fid, 0, "late", kDurable);
    REQUIRE(stage.read(fid) == "late");

    stage.store.try_again = 1'000'000;
    REQUIRE(stage.status(stage.client->stat(fid, kNoWait)) == fop::Status::kTryAgain);
    stage.store.try_again = 0;
}

TEST_CASE("client objects: a server that was away for long is asked again all the same",
          "[client]") {
    Stage stage({.patience = 50ms});
    const fop::Fid fid = stage.create("a");
    stage.try_again_after_crash = 3;
    REQUIRE(stage.over_a_crash(When::kBefore, "stat", stage.client->stat(fid, kNoWait)));
}

TEST_CASE("client objects: a call ends by its deadline", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.store.without_reply = "read";
    std::vector<std::byte> into(3U << 20);
    const ObjectClient::Wait wait{.deadline = after(stage.world.now(), 2s)};
    REQUIRE(stage.status(stage.client->read(fid, 0, into, wait)) == fop::Status::kTimedOut);
    REQUIRE(stage.world.now() < after(wait.deadline, 20s));
}

// -- over the lives of the server --

TEST_CASE("client objects: a change that is retried after a crash is made once", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    const std::string_view text = "once";

    const auto offset = stage.over_a_crash(
        When::kAfter, "append", stage.client->append(fid, std::as_bytes(std::span(text)), kNoWait));

    REQUIRE(offset.has_value());
    REQUIRE(*offset == 0);
    REQUIRE(stage.store.count("append") == 1);
    REQUIRE(stage.read(fid) == "once");

    const auto created = stage.over_a_crash(
        When::kAfter, "create", stage.client->create({.name = "b", .no_replace = true}, kNoWait));
    REQUIRE(created.has_value());
    REQUIRE(stage.done(stage.client->lookup("", "b", kNoWait)).fid == *created);
}

TEST_CASE("client objects: a change with unknown outcome on a missing disk is not retried",
          "[client]") {
    const bool is_put = GENERATE(false, true);
    Stage stage;
    std::uint16_t slot = 0;
    stage.look_after_crash = [&stage, &slot] {
        slot = stage.store.now.names.at("a").slot();
        stage.store.missing.insert(slot);
    };
    const std::vector<std::byte> bytes = pattern(100);
    NewObject wanted{.name = "a", .no_replace = true};

    const auto made = is_put
                          ? stage.over_a_crash(When::kAfter, "upload_commit",
                                               stage.client->put(std::move(wanted), bytes, kNoWait))
                          : stage.over_a_crash(When::kAfter, "create",
                                               stage.client->create(std::move(wanted), kNoWait));

    REQUIRE_FALSE(made.has_value());
    REQUIRE(made.error().status == fop::Status::kMediumMissing);
    REQUIRE(made.error().may_be_done);
    REQUIRE_THAT(made.error().words, ContainsSubstring("it may have been done before that"));
    REQUIRE(stage.store.count(is_put ? "upload_begin" : "create") == (is_put ? 0 : 1));
    REQUIRE(stage.store.now.objects.size() == 1);
    REQUIRE(stage.store.now.names.at("a").slot() == slot);
}

TEST_CASE("client objects: a durable write over a crash is there", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    const auto bytes = pattern(3U << 20);
    const auto written = stage.over_a_crash(
        When::kAfter, "write", stage.client->write({.fid = fid, .from = bytes}, kNoWait));
    REQUIRE(written.has_value());
    REQUIRE(stage.store.durable.objects.at(fid).bytes == bytes);
}

TEST_CASE("client objects: sync makes durable and keeps nothing", "[client]") {
    Stage stage;
    const fop::Fid one = stage.create("a");
    const fop::Fid other = stage.create("b");
    stage.write(one, 0, "one", kBuffered);
    stage.write(other, 0, "other", kBuffered);
    REQUIRE(stage.store.durable.objects.at(one).bytes.empty());
    REQUIRE(stage.client->held_bytes() == 8);

    stage.done(stage.client->sync(kNoWait));

    REQUIRE(stage.store.durable.objects.at(one).bytes.size() == 3);
    REQUIRE(stage.store.durable.objects.at(other).bytes.size() == 5);
    REQUIRE(stage.client->held_bytes() == 0);
    REQUIRE(stage.store.count("sync") == 2);  // One for each locality.
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.store.count("sync") == 2);
}

TEST_CASE("client objects: a durable change releases what was written before it", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "buffered", kBuffered);
    stage.write(fid, 100, "durable", kDurable);
    REQUIRE(stage.client->held_bytes() == 0);
}

TEST_CASE("client objects: buffered writes that were lost come back with sync", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "first", kBuffered);
    stage.done(stage.client->sync(kNoWait));
    stage.write(fid, 5, " second", kBuffered);
    stage.write(fid, 2, "RST", kBuffered);
    stage.crash();
    REQUIRE(stage.store.now.objects.at(fid).bytes.size() == 5);

    stage.done(stage.client->sync(kNoWait));

    const auto& bytes = stage.store.durable.objects.at(fid).bytes;
    REQUIRE(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) ==
            "fiRST second");
    REQUIRE(stage.client->held_bytes() == 0);
}

TEST_CASE("client objects: buffered writes on a disk that was written off are lost", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "first", kBuffered);
    stage.store.written_off.insert(fid.slot());

    const auto lost = stage.run(stage.client->sync(kNoWait));

    REQUIRE_FALSE(lost.has_value());
    REQUIRE(lost.error().status == fop::Status::kLost);
    REQUIRE_THAT(lost.error().words, ContainsSubstring("written off"));
    // Once.
    REQUIRE(stage.client->held_bytes() == 0);
    stage.done(stage.client->sync(kNoWait));
}

TEST_CASE("client objects: a lost write that others have overwritten is reported once",
          "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    const fop::Fid other = stage.create("b");
    stage.write(fid, 0, "first", kBuffered);
    stage.write(fid, 50, "second", kBuffered);
    stage.write(other, 7, "third", kBuffered);
    stage.store.overtaken = {0, 7};
    stage.crash();
    std::array<std::byte, 200> into{};

    const auto lost = stage.run(stage.client->read(fid, 0, into, kNoWait));

    REQUIRE_FALSE(lost.has_value());
    REQUIRE(lost.error().status == fop::Status::kLost);
    REQUIRE_THAT(lost.error().words, ContainsSubstring("to bytes 0 to 4 is lost: "));
    REQUIRE(lost.error().lost->fid == fid);
    REQUIRE(stage.read(fid).substr(50) == "second");
    const auto synced = stage.run(stage.client->sync(kNoWait));
    REQUIRE_FALSE(synced.has_value());
    REQUIRE(synced.error().lost->fid == other);
    REQUIRE(stage.client->held_bytes() == 0);
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.read(fid).substr(50) == "second");
}

TEST_CASE("client objects: a lost write without the right to write is reported once", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 3, "first", kBuffered);
    stage.write(fid, 50, "second", kBuffered);
    stage.store.denied = {3};
    stage.crash();
    const bool reads_first = GENERATE(false, true);
    CAPTURE(reads_first);

    Outcome<void> lost;
    if (reads_first) {
        std::array<std::byte, 200> into{};
        const auto read = stage.run(stage.client->read(fid, 0, into, kNoWait));
        if (!read) lost = std::unexpected(read.error());
    } else {
        lost = stage.run(stage.client->sync(kNoWait));
    }

    REQUIRE_FALSE(lost.has_value());
    REQUIRE(lost.error().status == fop::Status::kLost);
    REQUIRE(lost.error().lost->fid == fid);
    REQUIRE(lost.error().lost->ranges == std::vector{fop::Range{.offset = 3, .length = 5}});
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.client->held_bytes() == 0);
    REQUIRE(stage.read(fid).substr(50) == "second");
}

TEST_CASE("client objects: a change that reports a lost write has no effect", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "durable", kDurable);
    const auto lose = [&] {
        stage.write(fid, 0, "b", kBuffered);
        stage.store.overtaken = {0};
        stage.crash();
        stage.write(fid, 1, "u", kDurable);  // Finds it out.
    };
    const auto said = [&](Task<Outcome<void>> change) {
        const auto done = stage.run(std::move(change));
        return !done && done.error().lost;
    };

    lose();
    REQUIRE(said(stage.client->truncate(fid, 0, kNoWait)));
    lose();
    REQUIRE(said(stage.client->punch(fid, {.offset = 0, .length = 7}, kNoWait)));
    lose();
    REQUIRE(said(stage.client->set_attributes(fid, {.mode = 0600}, kNoWait)));
    lose();
    REQUIRE(said(stage.client->rename({.fid = fid, .name = "b"}, kNoWait)));
    lose();
    REQUIRE(said(stage.client->remove(fid, "", kNoWait)));
    REQUIRE(stage.read(fid) == "durable");
}

TEST_CASE("client objects: a read returns a buffered write that the server has lost", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "buffered", kBuffered);
    stage.crash();
    REQUIRE(stage.read(fid) == "buffered");

    stage.write(fid, 0, "B", kBuffered);
    stage.crash();
    REQUIRE(stage.done(stage.client->stat(fid, kNoWait)).size_bytes == 8);
    REQUIRE(stage.read(fid) == "Buffered");
}

TEST_CASE("client objects: a lost write does not overwrite newer data", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "aaaaaaaa", kBuffered);
    stage.crash();
    stage.write(fid, 2, "BB", kDurable);
    REQUIRE(stage.read(fid) == "aaBBaaaa");

    stage.write(fid, 0, "cccccccc", kBuffered);
    stage.crash();
    stage.done(stage.client->truncate(fid, 3, kNoWait));
    REQUIRE(stage.read(fid) == "ccc");

    stage.write(fid, 0, "dddddd", kBuffered);
    stage.crash();
    const std::string_view tail = "E";
    stage.done(stage.client->append(fid, std::as_bytes(std::span(tail)), kNoWait));
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.read(fid) == "ddddddE");

    stage.write(fid, 0, "ffff", kBuffered);
    stage.crash();
    stage.done(stage.client->remove(fid, "", kNoWait));
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.client->held_bytes() == 0);
}

TEST_CASE("client objects: a lost write that was cleared restores the object's size", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 2, "cccc", kBuffered);
    stage.crash();
    stage.done(stage.client->punch(fid, {.offset = 4, .length = 100}, kNoWait));
    REQUIRE(stage.read(fid) == std::string("\0\0cc\0\0", 6));
    REQUIRE(stage.done(stage.client->stat(fid, kNoWait)).size_bytes == 6);
}

TEST_CASE("client objects: writes that survived a crash are not written again", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "mine", kBuffered);
    // Somebody else's flush, and write, of which this client knows nothing.
    stage.store.now.objects.at(fid).bytes.back() = std::byte{'!'};
    stage.store.durable = stage.store.now;
    stage.crash();
    REQUIRE(stage.read(fid) == "min!");
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.store.count("write") == 0);
    REQUIRE(stage.client->held_bytes() == 0);
}

TEST_CASE("client objects: of two writes the one that the server did later is written again",
          "[client]") {
    const std::string_view first = "first";
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.store.told_late = {0};
    const auto told = stage.begin(stage.client->write(
        {.fid = fid, .from = std::as_bytes(std::span(first)), .durability = kBuffered}, kNoWait));
    REQUIRE_FALSE(told->has_value());
    // Somebody else's flush.
    stage.store.durable = stage.store.now;
    stage.write(fid, 1, "SECOND", kBuffered);
    stage.world.run_for(100ms);
    REQUIRE(told->has_value());
    stage.crash();
    REQUIRE(stage.store.now.objects.at(fid).bytes.size() == 5);

    REQUIRE(stage.read(fid) == "fSECOND");
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.client->held_bytes() == 0);
}

// -- when writing again fails --

namespace {

// Two objects of one slot, of which one has lost what was written to it.
struct Losing : Stage {
    explicit Losing(ObjectClientOptions options = {}) : Stage(std::move(options)) {
        store.full = {2};
        lossy = create("lossy");
        other = create("other");
        store.full.clear();
        write(other, 0, "other", kDurable);
        write(lossy, 3, "lost", kBuffered);
    }
    void lose(fop::Status status) {
        store.not_again[3] = status;
        crash();
    }
    void use_other() {
        const std::string_view more = "more";
        const auto bytes = std::as_bytes(std::span(more));
        REQUIRE(read(other) == "other");
        REQUIRE(done(client->stat(other, kNoWait)).size_bytes == 5);
        REQUIRE(done(client->lookup("", "other", kNoWait)).size_bytes == 5);
        REQUIRE(done(client->append(other, bytes, kNoWait)) == 5);
        REQUIRE(done(client->append(other, bytes, kNoWait)) == 9);
        done(client->truncate(other, 9, kNoWait));
        done(client->punch(other, {.offset = 0, .length = 1}, kNoWait));
        write(other, 1, "T", kDurable);
        write(other, 2, "H", kBuffered);
        REQUIRE(read(other) == std::string("\0THermore", 9));
    }

    fop::Fid lossy{};
    fop::Fid other{};
};

}  // namespace

TEST_CASE("client objects: a replay refused for a lasting reason is reported once", "[client]") {
    const auto status = GENERATE(fop::Status::kNoSpace, fop::Status::kQuota, fop::Status::kCorrupt,
                                 fop::Status::kReadOnly, fop::Status::kInternal);
    CAPTURE(fop::to_string(status));
    Losing stage;
    stage.lose(status);
    stage.use_other();

    const auto lost = stage.run(stage.client->stat(stage.lossy, kNoWait));
    REQUIRE_FALSE(lost.has_value());
    REQUIRE(lost.error().status == fop::Status::kLost);
    REQUIRE(lost.error().lost->fid == stage.lossy);
    REQUIRE_THAT(lost.error().words,
                 ContainsSubstring("bytes 3 to 6 is lost: the fake store says no"));
    REQUIRE(stage.read(stage.lossy).empty());
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.client->held_bytes() == 0);
}

TEST_CASE("client objects: a change succeeds although a replay was refused", "[client]") {
    const auto status = GENERATE(fop::Status::kNoSpace, fop::Status::kBusy);
    const std::string_view text = "text";
    Losing stage;
    SECTION("a durable write") {
        stage.lose(status);
        stage.write(stage.lossy, 50, text, kDurable);
    }
    SECTION("a buffered write") {
        stage.lose(status);
        stage.write(stage.lossy, 50, text, kBuffered);
    }
    SECTION("a truncate") {
        stage.lose(status);
        stage.done(stage.client->truncate(stage.lossy, 5, kNoWait));
    }
    SECTION("a punch") {
        stage.lose(status);
        stage.done(stage.client->punch(stage.lossy, {.offset = 4, .length = 1}, kNoWait));
    }
    stage.store.not_again.clear();
    const auto synced = stage.status(stage.client->sync(kNoWait));
    REQUIRE(synced == (status == fop::Status::kBusy ? fop::Status::kDone : fop::Status::kLost));
}

TEST_CASE("client objects: a replay refused for a passing reason is retried", "[client]") {
    const auto status = GENERATE(fop::Status::kTimedOut, fop::Status::kBusy, fop::Status::kTryAgain,
                                 fop::Status::kMediumMissing);
    CAPTURE(fop::to_string(status));
    const std::string_view more = "more";
    const auto bytes = std::as_bytes(std::span(more));
    Losing stage({.patience = 50ms});
    stage.lose(status);
    stage.use_other();

    // Not what was not written yet, nor behind it.
    std::vector<std::byte> into(100);
    REQUIRE(stage.status(stage.client->read(stage.lossy, 0, into, kNoWait)) == status);
    REQUIRE(stage.status(stage.client->append(stage.lossy, bytes, kNoWait)) == status);
    REQUIRE(stage.store.count("append") == 2);
    REQUIRE(stage.status(stage.client->sync(kNoWait)) == status);
    REQUIRE(stage.client->held_bytes() == 4);

    stage.store.not_again.clear();
    const bool syncs_first = GENERATE(false, true);
    if (syncs_first) stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.read(stage.lossy) == std::string("\0\0\0lost", 7));
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.client->held_bytes() == 0);
}

TEST_CASE("client objects: pending replays take no room from other objects", "[client]") {
    Losing stage({.held_bytes_max = 1000, .patience = 50ms});
    const std::string text(600, 'x');
    stage.lose(fop::Status::kTryAgain);
    for (std::uint64_t i = 0; i < 4; ++i) {
        stage.write(stage.other, i * 600, text, kBuffered);
        REQUIRE(stage.client->held_bytes() <= 1000);
    }
    REQUIRE(stage.read(stage.other, 0, 2400) == std::string(2400, 'x'));
}

TEST_CASE("client objects: a stalled replay delays no other object", "[client]") {
    Losing stage;
    stage.crash();
    stage.store.ignored = "write";
    const auto synced = stage.begin(stage.client->sync(kNoWait));
    stage.world.run_for(10s);
    REQUIRE(stage.store.count("write") == 1);
    const ObjectClient::Wait wait{.deadline = after(stage.world.now(), 1s)};
    const std::string_view more = "more";

    REQUIRE(stage.done(stage.client->append(stage.other, std::as_bytes(std::span(more)), wait)) ==
            5);
    // Its own change does.
    REQUIRE(stage.status(stage.client->truncate(stage.lossy, 5, wait)) == fop::Status::kTimedOut);
    REQUIRE(stage.store.count("truncate") == 0);
    REQUIRE_FALSE(synced->has_value());
    stage.crash();
    stage.world.run_for(30s);
    REQUIRE(synced->has_value());
    REQUIRE((*synced)->has_value());
}

TEST_CASE("client objects: a stalled locality does not stop calls to another", "[client]") {
    Losing stage;
    stage.store.full = {1};
    const fop::Fid away = stage.create("away");
    stage.write(away, 0, "away", kBuffered);
    stage.crash();
    stage.store.away = {1};
    const ObjectClient::Wait wait{.deadline = after(stage.world.now(), 20s)};

    stage.use_other();
    REQUIRE(stage.read(stage.lossy) == std::string("\0\0\0lost", 7));
    REQUIRE_FALSE(stage.run(stage.client->sync(wait)));
    stage.store.away.clear();
    stage.done(stage.client->sync(kNoWait));
    REQUIRE(stage.read(away) == "away");
}

TEST_CASE("client objects: held writes stay within their limit", "[client]") {
    Stage stage({.held_bytes_max = 10'000});
    const fop::Fid fid = stage.create("a");
    const std::string text(3000, 'x');
    for (std::uint64_t i = 0; i < 20; ++i) {
        stage.write(fid, i * 3000, text, kBuffered);
        REQUIRE(stage.client->held_bytes() <= 10'000);
    }
    REQUIRE(stage.store.count("sync") > 0);
    stage.write(fid, 0, std::string(20'000, 'y'), kBuffered);
    REQUIRE(stage.store.durable.objects.at(fid).bytes.size() == 60'000);
}

// -- whole objects --

TEST_CASE("client objects: a put is visible and durable when it has ended", "[client]") {
    Stage stage;
    const auto bytes = pattern(2'500'000);
    const fop::Fid fid = stage.done(stage.client->put({.name = "a"}, bytes, kNoWait));
    REQUIRE(stage.store.durable.objects.at(fid).bytes == bytes);
    REQUIRE(stage.store.durable.objects.at(fid).visible);
    REQUIRE(stage.done(stage.client->lookup("", "a", kNoWait)).fid == fid);

    const fop::Fid empty = stage.done(stage.client->put({.name = "a"}, {}, kNoWait));
    REQUIRE(stage.done(stage.client->lookup("", "a", kNoWait)).fid == empty);
    REQUIRE(stage.read(empty).empty());
    REQUIRE(stage.store.now.objects.size() == 1);
}

TEST_CASE("client objects: a put sends lost parts again after a crash", "[client]") {
    for (const auto* const type : {"upload_begin", "upload_write", "upload_commit"}) {
        for (const When when : {When::kBefore, When::kAfter}) {
            for (const bool begun_durably : {true, false}) {
                CAPTURE(type, when == When::kBefore, begun_durably);
                Stage stage;
                stage.store.begins_uploads_durably = begun_durably;
                const auto bytes = pattern(2'500'000);
                const auto put = stage.over_a_crash(
                    when, type, stage.client->put({.name = "a"}, bytes, kNoWait));
                if (!put) FAIL(put.error().words);
                REQUIRE(stage.store.durable.objects.at(*put).bytes == bytes);
                REQUIRE(stage.store.now.names.at("a") == *put);
                REQUIRE(stage.store.now.objects.size() == 1);
            }
        }
    }
}

TEST_CASE("client objects: a put that is refused leaves nothing", "[client]") {
    Stage stage;
    stage.create("a");
    const auto bytes = pattern(100'000);
    REQUIRE(stage.status(stage.client->put({.name = "a", .no_replace = true}, bytes, kNoWait)) ==
            fop::Status::kExists);
    REQUIRE(stage.store.now.objects.size() == 1);
    REQUIRE(stage.store.count("upload_abort") == 1);
}

TEST_CASE("client objects: closing ends calls in flight", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.store.without_reply = "stat";
    std::optional<Outcome<ObjectInfo>> outcome;
    auto task = [](ObjectClient* client, fop::Fid which,
                   std::optional<Outcome<ObjectInfo>>* result) -> Task<void> {
        auto found = co_await client->stat(which, kNoWait);
        result->emplace(std::move(found));
    };
    stage.reactor->spawn(stage.gate, task(&*stage.client, fid, &outcome));
    stage.world.run_for(10ms);
    REQUIRE_FALSE(outcome.has_value());

    stage.close();

    REQUIRE(outcome.has_value());
    REQUIRE(outcome->error().status == fop::Status::kCancelled);
}

}  // namespace fopd::client::testing

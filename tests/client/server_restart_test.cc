// Goal: a client of objects does nothing twice and forgets no buffered write when the server ends
// and comes back; what the server lost is written again, or reported once. Method: a fake store
// with two localities in the simulated world, which is crashed as it is.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/object_client.h"
#include "tests/catch.h"
#include "tests/client/object_stage.h"

namespace fopd::client::testing {

TEST_CASE("client objects: a change that is retried after a crash is made once", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    const std::string_view text = "once";

    const auto offset =
        stage.over_a_crash(Stage::When::kAfter, "append",
                           stage.client->append(fid, std::as_bytes(std::span(text)), kNoWait));

    REQUIRE(offset.has_value());
    REQUIRE(*offset == 0);
    REQUIRE(stage.store.count("append") == 1);
    REQUIRE(stage.read(fid) == "once");

    const auto created =
        stage.over_a_crash(Stage::When::kAfter, "create",
                           stage.client->create({.name = "b", .no_replace = true}, kNoWait));
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
                          ? stage.over_a_crash(Stage::When::kAfter, "upload_commit",
                                               stage.client->put(std::move(wanted), bytes, kNoWait))
                          : stage.over_a_crash(Stage::When::kAfter, "create",
                                               stage.client->create(std::move(wanted), kNoWait));

    REQUIRE_FALSE(made.has_value());
    REQUIRE(made.error().status == fop::Status::kMediumMissing);
    REQUIRE(made.error().may_be_done);
    REQUIRE_THAT(made.error().words, ContainsSubstring("the change may have been made before"));
    REQUIRE(stage.store.count(is_put ? "upload_begin" : "create") == (is_put ? 0 : 1));
    REQUIRE(stage.store.now.objects.size() == 1);
    REQUIRE(stage.store.now.names.at("a").slot() == slot);
}

TEST_CASE("client objects: a durable write over a crash is there", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    const auto bytes = pattern(3U << 20);
    const auto written = stage.over_a_crash(
        Stage::When::kAfter, "write", stage.client->write({.fid = fid, .from = bytes}, kNoWait));
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
    REQUIRE_THAT(lost.error().words, ContainsSubstring("to bytes 0 to 4 are lost: "));
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
                 ContainsSubstring("bytes 3 to 6 are lost: the fake store says no"));
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

}  // namespace fopd::client::testing

// Goal: bytes come back as they were written, calls end in time, and refusals are reported. Method:
// a fake store with two localities in the simulated world. server_restart_test.cc has what happens
// when the server ends.
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
    is_refused(client.fits_quota(text, {.bytes = 1}, kNoWait), "pool");
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

TEST_CASE("client objects: a server says what fits the quota, an older one does not", "[client]") {
    Stage stage;
    const auto fits = [&stage](WantedSpace wanted) {
        return stage.client->fits_quota({}, wanted, kNoWait);
    };
    CHECK_FALSE(stage.done(fits({.bytes = 4096, .objects = 1})));
    stage.store.quota_left = 4096;
    CHECK(stage.done(fits({.bytes = 4096, .objects = 100})));
    CHECK(stage.status(fits({.bytes = 4097, .objects = 1})) == fop::Status::kQuota);
    CHECK(stage.status(fits({.objects = 101})) == fop::Status::kQuota);
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

TEST_CASE("client objects: a full staging is passed over, or waited for", "[client]") {
    Stage stage;
    stage.store.when_full = fop::Status::kStagingFull;
    stage.store.full = {1};
    for (const auto* const name : {"a", "b"}) REQUIRE(stage.create(name).slot() == 2);
    stage.store.full = {1, 2};
    stage.store.full_for = 20;
    const Instant begun = stage.world.now();
    stage.done(stage.client->put({.name = "c"}, pattern(10), kNoWait));
    CHECK(stage.store.full.empty());
    // With pauses between the tries.
    CHECK(stage.world.now() - begun > 500ms);
    CHECK(stage.world.now() - begun < 10s);
}

TEST_CASE("client objects: a wait for a full staging ends by the deadline of the call",
          "[client]") {
    Stage stage;
    stage.store.when_full = fop::Status::kStagingFull;
    stage.store.full = {1, 2};
    const Instant deadline = after(stage.world.now(), 1min);
    CHECK(stage.status(stage.client->put({.name = "a"}, pattern(10), {.deadline = deadline})) ==
          fop::Status::kStagingFull);
    CHECK(after(stage.world.now(), 1s) >= deadline);
    CHECK(stage.world.now() <= deadline);
    // One of two disks has no space for it, whatever leaves.
    stage.store.full = {2};
    CHECK(stage.create("b").slot() == 1);
}

TEST_CASE("client objects: changes wait while their disk is a full staging", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.store.staging_full = 12;
    stage.write(fid, 0, "0123456789", kDurable);
    CHECK(stage.store.staging_full == 0);
    CHECK(stage.store.count("write") == 13);
    stage.store.staging_full = 3;
    stage.done(stage.client->put({.name = "b"}, pattern(100'000), kNoWait));
    CHECK(stage.store.staging_full == 0);
    stage.store.staging_full = 1 << 30;
    const Instant deadline = after(stage.world.now(), 10s);
    const auto outcome = stage.run(stage.client->append(fid, pattern(10), {.deadline = deadline}));
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().status == fop::Status::kStagingFull);
}

TEST_CASE("client objects: a pool that takes no new objects is named", "[client]") {
    Stage stage;
    stage.store.offline = {1, 2};
    const auto named = stage.run(stage.client->create({.name = "a", .pool = "fast"}, kNoWait));
    const auto unnamed = stage.run(stage.client->create({.name = "a"}, kNoWait));
    REQUIRE_FALSE(named.has_value());
    REQUIRE(named.error().status == fop::Status::kReadOnly);
    REQUIRE(named.error().words == "no disk of pool fast takes new objects now: 2 missing");
    REQUIRE_FALSE(unnamed.has_value());
    REQUIRE(unnamed.error().words ==
            "no disk of the default pool takes new objects now: 2 missing");
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
    REQUIRE(stage.over_a_crash(Stage::When::kBefore, "stat", stage.client->stat(fid, kNoWait)));
}

TEST_CASE("client objects: a call ends by its deadline", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.store.without_reply = "read";
    std::vector<std::byte> into(3U << 20);
    const ObjectClient::Wait wait{.deadline = after(stage.world.now(), 2s)};
    const auto read = stage.run(stage.client->read(fid, 0, into, wait));
    REQUIRE_FALSE(read.has_value());
    REQUIRE(read.error().status == fop::Status::kTimedOut);
    REQUIRE(read.error().words == "no answer in time");
    REQUIRE(stage.world.now() < after(wait.deadline, 20s));
}

// -- whole objects --

TEST_CASE("client objects: a call waits for bytes that are on tape, and is made again",
          "[client]") {
    Stage stage;
    ObjectClient& client = *stage.client;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "0123456789", kDurable);
    const auto on_tape = [&] { stage.store.on_tape[fid] = fop::RecallState::kDone; };

    on_tape();
    CHECK(stage.read(fid) == "0123456789");
    on_tape();
    stage.write(fid, 2, "xx", kDurable);
    on_tape();
    const std::string more = "+";
    CHECK(stage.done(client.append(fid, std::as_bytes(std::span(more)), kNoWait)) == 10);
    on_tape();
    stage.done(client.truncate(fid, 8, kNoWait));
    CHECK(stage.read(fid) == "01xx4567");
    CHECK(stage.store.count("recall_wait") == 4);
    CHECK(stage.store.count("append") == 2);
}

TEST_CASE("client objects: a wait for tape ends by the deadline of the call", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "0123456789", kDurable);
    stage.store.on_tape[fid] = fop::RecallState::kDone;
    stage.store.recall_takes = 1h;
    std::string into(10, '?');
    const auto outcome =
        stage.run(stage.client->read(fid, 0, std::as_writable_bytes(std::span(into)),
                                     {.deadline = after(stage.world.now(), 1min)}));
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().status == fop::Status::kStaging);
    CHECK(stage.store.count("read") == 1);
}

TEST_CASE("client objects: a wait for tape that ends in vain has the server's reason", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "0123456789", kDurable);
    stage.store.on_tape[fid] = fop::RecallState::kDone;
    stage.store.recall_takes = 1h;
    stage.store.waits_in_vain = 1;
    stage.store.why_in_vain = "all drives are down";
    if (GENERATE(false, true)) stage.client->tape().report_waiting();
    std::string into(10, '?');

    const auto outcome =
        stage.run(stage.client->read(fid, 0, std::as_writable_bytes(std::span(into)),
                                     {.deadline = after(stage.world.now(), 1min)}));

    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().status == fop::Status::kStaging);
    CHECK(outcome.error().words == "its bytes are still on tape: all drives are down");
    CHECK(stage.client->tape().waiting().reason == "all drives are down");
}

TEST_CASE("client objects: who shows nothing asks for the reason before the deadline", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "0123456789", kDurable);
    stage.store.on_tape[fid] = fop::RecallState::kDone;
    std::string into(10, '?');
    const auto read = [&](Instant deadline) {
        stage.store.patiences.clear();
        return stage.done(stage.client->read(fid, 0, std::as_writable_bytes(std::span(into)),
                                             {.deadline = deadline}));
    };

    CHECK(read(after(stage.world.now(), 8min)) == into.size());
    REQUIRE(stage.store.patiences.size() == 1);
    CHECK(stage.store.patiences[0] <= 7 * 60'000);
    CHECK(stage.store.patiences[0] > 7 * 60'000 - 1000);

    stage.store.on_tape[fid] = fop::RecallState::kDone;
    stage.store.recall_takes = 1ms;
    CHECK(read(after(stage.world.now(), 900ms)) == into.size());
    CHECK(stage.store.patiences == std::vector<std::uint64_t>{0});
}

TEST_CASE("client objects: whoever wants to show it learns of a recall's place", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "0123456789", kDurable);
    stage.store.on_tape[fid] = fop::RecallState::kDone;
    CHECK(stage.read(fid) == "0123456789");
    CHECK(stage.store.patiences == std::vector<std::uint64_t>{0});

    stage.store.patiences.clear();
    stage.store.on_tape[fid] = fop::RecallState::kDone;
    stage.store.waits_in_vain = 3;
    stage.client->tape().report_waiting();
    CHECK(stage.read(fid) == "0123456789");
    CHECK(stage.store.patiences == std::vector<std::uint64_t>{1, 5000, 5000, 5000});
    const Slots::TapeWait& waiting = stage.client->tape().waiting();
    CHECK(waiting.calls == 0);
    CHECK(waiting.place == 1);
    REQUIRE(waiting.expected_at.has_value());
    CHECK(*waiting.expected_at <= after(stage.world.now(), 1min));
}

TEST_CASE("client objects: a recall that ends without the bytes ends the call", "[client]") {
    Stage stage;
    const fop::Fid fid = stage.create("a");
    stage.write(fid, 0, "0123456789", kDurable);
    const auto [state, status, words] = GENERATE(table<fop::RecallState, fop::Status, std::string>(
        {{fop::RecallState::kFailed, fop::Status::kMediumMissing,
          "its bytes cannot be read from tape: all copies are damaged"},
         {fop::RecallState::kCancelled, fop::Status::kCancelled,
          "its recall from tape was cancelled"}}));
    stage.store.on_tape[fid] = state;
    std::string into(10, '?');
    const auto outcome =
        stage.run(stage.client->read(fid, 0, std::as_writable_bytes(std::span(into)), kNoWait));
    REQUIRE_FALSE(outcome.has_value());
    CHECK(outcome.error().status == status);
    CHECK(outcome.error().words == words);
}

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
        for (const Stage::When when : {Stage::When::kBefore, Stage::When::kAfter}) {
            for (const bool begun_durably : {true, false}) {
                CAPTURE(type, when == Stage::When::kBefore, begun_durably);
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

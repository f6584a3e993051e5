// Goal: the contract of the log, promise by promise, on a simulated disk.
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/cancel.h"
#include "core/virtual_world.h"
#include "devices/memory_disk.h"
#include "store/log.h"
#include "store/log_entry.h"
#include "store/superblock.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/store/log_bench.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::log_bench;

namespace {

constexpr std::uint32_t kAlways = 1'000'000;

Task<std::vector<Result<void>>> await_all(Log* log, std::deque<Commit>* commits) {
    std::vector<Result<void>> results;
    for (Commit& commit : *commits) {
        const auto durable = co_await log->durable(commit);
        results.push_back(durable);
    }
    co_return results;
}

}  // namespace

TEST_CASE("store log: commits of one turn share one write and one flush", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    std::vector<Reservation> rooms;
    for (int i = 0; i < 20; ++i) rooms.push_back(bench.reserve(3));
    const devices::DiskCounts before = bench.disk->counts();
    std::deque<Commit> commits(20);
    for (Commit& commit : commits) {
        bench.log->begin(commit, std::move(rooms.back()), bytes_of("abc"), 1, Durability::kDurable,
                         Data::kNone);
        rooms.pop_back();
    }
    const auto results = bench.run(await_all(bench.log.get(), &commits));

    for (const auto& result : results) REQUIRE(result.has_value());
    REQUIRE(commits.front().seq() == commits.back().seq());
    REQUIRE(bench.disk->counts().writes == before.writes + 1);
    REQUIRE(bench.disk->counts().flushes == before.flushes + 1);
    bench.close();
    REQUIRE(bench.open().clean);
    std::string all;
    for (int i = 0; i < 20; ++i) all += "abc";
    REQUIRE(bench.visitor.texts == std::vector<std::string>{all});
}

TEST_CASE("store log: what comes while an entry is on its way shares the next one", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    bench.disk_takes(300us);
    const std::uint64_t flushes = bench.disk->counts().flushes;
    std::deque<Commit> commits(6);
    for (Commit& commit : commits) {
        bench.log->begin(commit, bench.reserve(3), bytes_of("abc"), 1, Durability::kDurable,
                         Data::kNone);
        bench.world.run_for(50us);
    }
    const auto results = bench.run(await_all(bench.log.get(), &commits));
    for (const auto& result : results) REQUIRE(result.has_value());
    REQUIRE(commits[1].seq() == commits[0].seq() + 1);
    REQUIRE(commits.back().seq() == commits[1].seq());
    REQUIRE(bench.disk->counts().flushes == flushes + 2);
}

TEST_CASE("store log: an entry closed for want of room counts among those on their way",
          "[store]") {
    Bench bench;
    bench.options.entries_in_flight_max = 1;
    bench.format();
    bench.open();
    const std::string large(bench.log->payload_max() - 50, 'x');
    const std::vector<std::string> texts{std::string(100, 'y'), large, "abc"};
    std::vector<Reservation> rooms;
    for (const std::string& text : texts) {
        rooms.push_back(bench.reserve(static_cast<std::uint32_t>(text.size())));
    }
    bench.disk_takes(300us);
    std::deque<Commit> commits(3);
    const auto begin = [&](std::size_t i) {
        bench.log->begin(commits[i], std::move(rooms[i]), bytes_of(texts[i]), 1,
                         Durability::kDurable, Data::kNone);
    };
    begin(0);
    begin(1);
    bench.world.run_for(100us);
    begin(2);
    for (const auto& result : bench.run(await_all(bench.log.get(), &commits))) {
        REQUIRE(result.has_value());
    }
    REQUIRE(commits[1].seq() == commits[0].seq() + 1);
    REQUIRE(commits[2].seq() == commits[1].seq());
}

TEST_CASE("store log: a disk that flushes slowly is written to meanwhile", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    bench.disk_takes(10ms);
    std::deque<Commit> commits(2);
    const Instant begun = bench.reactor().now();
    bench.log->begin(commits[0], bench.reserve(3), bytes_of("one"), 1, Durability::kDurable,
                     Data::kNone);
    bench.world.run_for(100us);
    bench.log->begin(commits[1], bench.reserve(3), bytes_of("two"), 1, Durability::kDurable,
                     Data::kNone);
    const auto results = bench.run(await_all(bench.log.get(), &commits));
    for (const auto& result : results) REQUIRE(result.has_value());
    REQUIRE(commits[1].seq() == commits[0].seq() + 1);
    // A write and two flushes; one after the other it would be 40 ms.
    REQUIRE(bench.reactor().now() - begun < 35ms);
}

TEST_CASE("store log: nothing is durable before the data of the commit, and of those before",
          "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    Commit slow;
    Commit quick;
    bench.log->begin(slow, bench.reserve(4), bytes_of("slow"), 1, Durability::kDurable,
                     Data::kPending);
    bench.world.run_for(10ms);
    bench.log->begin(quick, bench.reserve(5), bytes_of("quick"), 1, Durability::kDurable,
                     Data::kNone);
    bench.world.run_for(1s);
    REQUIRE(slow.seq() < quick.seq());
    REQUIRE(bench.log->durable_seq() < slow.seq());

    bench.log->data_done(slow, {});
    bench.world.run_for(1s);
    REQUIRE(bench.log->durable_seq() >= quick.seq());
}

TEST_CASE(
    "store log: a buffered commit is durable after the interval, then trusted, then all rests",
    "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    Commit commit;
    bench.log->begin(commit, bench.reserve(5), bytes_of("later"), 1, Durability::kBuffered,
                     Data::kNone);
    bench.world.run_for(50ms);
    REQUIRE(bench.log->durable_seq() < commit.seq());
    bench.world.run_for(100ms);
    REQUIRE(bench.log->durable_seq() == commit.seq());
    REQUIRE(bench.log->trusted() < commit.seq());
    bench.world.run_for(1s);
    REQUIRE(bench.log->trusted() >= commit.seq());
    REQUIRE_FALSE(bench.world.step());
}

TEST_CASE("store log: sync covers what was begun, settle makes it trusted at once", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    Commit commit;
    bench.log->begin(commit, bench.reserve(3), bytes_of("now"), 1, Durability::kBuffered,
                     Data::kNone);
    REQUIRE(bench.run(bench.log->sync({})).has_value());
    REQUIRE(bench.log->durable_seq() == commit.seq());
    REQUIRE(bench.log->trusted() < commit.seq());
    REQUIRE(bench.run(bench.log->settle(commit.seq(), {})).has_value());
    REQUIRE(bench.log->trusted() >= commit.seq());
    REQUIRE(bench.log->receipt_of(commit) == Receipt{.epoch = 2, .seq = commit.seq()});
}

TEST_CASE("store log: a failed flush fails all that was not durable, and is not retried",
          "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    REQUIRE(bench.commit("kept").has_value());
    bench.disk->faults().flush_error_ppm = kAlways;
    const std::uint64_t flushes = bench.disk->counts().flushes;
    std::deque<Commit> commits(3);
    for (Commit& commit : commits) {
        bench.log->begin(commit, bench.reserve(4), bytes_of("gone"), 1, Durability::kDurable,
                         Data::kNone);
        bench.world.run_for(50us);
    }
    for (const auto& result : bench.run(await_all(bench.log.get(), &commits))) {
        REQUIRE(!result.has_value());
        REQUIRE(result.error().code == Errc::kIo);
    }
    bench.disk->faults().flush_error_ppm = 0;
    REQUIRE(bench.log->failed() != nullptr);
    REQUIRE(bench.commit("no more").error().code == Errc::kIo);
    REQUIRE(bench.run(bench.log->sync({})).error().code == Errc::kIo);
    bench.world.run_for(1s);
    REQUIRE(bench.disk->counts().flushes == flushes + 1);
    REQUIRE(bench.run(bench.log->close()).error().code == Errc::kIo);

    REQUIRE(!bench.open().clean);
    REQUIRE(bench.visitor.texts.front() == "kept");
}

TEST_CASE("store log: a failed write of the log, and one of data, fail the log", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    SECTION("of the log") {
        bench.disk->faults().write_error_ppm = kAlways;
        REQUIRE(bench.commit("never").error().code == Errc::kIo);
    }
    SECTION("of data") {
        Commit commit;
        bench.log->begin(commit, bench.reserve(5), bytes_of("never"), 1, Durability::kBuffered,
                         Data::kPending);
        bench.log->data_done(commit, std::unexpected(Error{.code = Errc::kIo}));
    }
    REQUIRE(bench.log->failed() != nullptr);
    // Who held a reservation by then begins all the same, and is told.
    REQUIRE(bench.run(bench.log->close()).error().code == Errc::kIo);
}

TEST_CASE("store log: a commit begun on a failed log fails, and holds no room", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    auto room = bench.reserve(4);
    Commit failing;
    bench.log->begin(failing, bench.reserve(4), bytes_of("fail"), 1, Durability::kDurable,
                     Data::kPending);
    bench.log->data_done(failing, std::unexpected(Error{.code = Errc::kIo}));
    std::deque<Commit> late(1);
    bench.log->begin(late.front(), std::move(room), bytes_of("late"), 1, Durability::kDurable,
                     Data::kPending);
    bench.log->data_done(late.front(), {});
    REQUIRE(bench.run(await_all(bench.log.get(), &late)).front().error().code == Errc::kIo);
    REQUIRE(bench.run(bench.log->close()).error().code == Errc::kIo);
}

TEST_CASE("store log: the largest commit fits, a larger one is refused", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    const std::string largest(bench.log->payload_max(), 'x');
    REQUIRE(bench.commit(largest).has_value());
    REQUIRE(bench.commit(largest + "x").error().code == Errc::kNoSpace);
    bench.close();
    bench.open();
    REQUIRE(bench.visitor.texts.front() == largest);
}

TEST_CASE(
    "store log: data are asked for only above the trusted point; what is not whole ends the log",
    "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    for (const char* text : {"one", "two", "three", "four"})
        REQUIRE(bench.commit(text).has_value());
    // Each entry's mark vouches for the one before, so only the last is in doubt.
    SECTION("the last in doubt is whole") {
        REQUIRE(bench.open().last_seq == 4);
        REQUIRE(bench.visitor.asked == std::vector<std::uint64_t>{4});
        REQUIRE(bench.visitor.texts.size() == 4);
    }
    SECTION("it is not") {
        bench.plug_in();
        bench.visitor.bad_seq = 4;
        const auto opened = bench.run(bench.log->open(&bench.visitor, {}));
        REQUIRE(opened->last_seq == 3);
        REQUIRE(bench.visitor.texts.size() == 3);
        REQUIRE(!opened->clean);
        // It never comes back, although its bytes were there.
        REQUIRE(bench.open().last_seq == 3);
        REQUIRE(bench.visitor.asked.empty());
    }
}

TEST_CASE(
    "store log: a full log makes who reserves wait, first come first served, until it is cleaned",
    "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    const std::string text(12'000, 'f');
    const Instant soon = after(bench.world.now(), 10s);
    std::vector<Reservation> rooms;
    for (;;) {
        auto room =
            bench.run(bench.log->reserve(12'000, {.deadline = after(bench.world.now(), 1s)}));
        if (!room) {
            REQUIRE(room.error().code == Errc::kTimedOut);
            break;
        }
        Commit commit;
        bench.log->begin(commit, std::move(*room), bytes_of(text), 1, Durability::kBuffered,
                         Data::kNone);
        REQUIRE(bench.run(bench.log->sync({})).has_value());
    }
    REQUIRE(bench.world.now() < after(soon, 60s));
    REQUIRE(bench.log->cleaning_wanted());
    REQUIRE(bench.run(bench.log->clean(&bench.visitor)).error().code == Errc::kBusy);

    // A small one behind a large one waits as well.
    std::vector<int> order;
    core::Gate gate;
    struct Taker {
        static Task<void> take(Log* log, std::uint32_t bytes, int name, std::vector<int>* order) {
            auto room = co_await log->reserve(bytes, {});
            ENSURE(room.has_value());
            order->push_back(name);
        }
    };
    bench.reactor().spawn(gate, Taker::take(bench.log.get(), 16'000, 1, &order));
    bench.reactor().spawn(gate, Taker::take(bench.log.get(), 1, 2, &order));
    bench.world.run_for(1s);
    REQUIRE(order.empty());
    bench.log->set_applied(bench.log->durable_seq());
    REQUIRE(bench.run(bench.log->clean(&bench.visitor)).has_value());
    bench.world.run_for(1s);
    REQUIRE(order == std::vector<int>{1, 2});
    bench.close();
}

TEST_CASE("store log: grows up to its limit, and returns segments it does not need", "[store]") {
    Bench bench;
    bench.options.segments_max = 7;
    bench.format();
    bench.open();
    const std::string text(12'000, 'g');
    while (!bench.log->cleaning_wanted()) REQUIRE(bench.commit(text).has_value());
    REQUIRE(bench.log->space().segments == 7);
    REQUIRE(bench.segments.free.size() == 5);

    bench.log->set_segments_max(5);
    while (bench.log->cleaning_wanted()) {
        bench.log->set_applied(bench.log->durable_seq());
        REQUIRE(bench.run(bench.log->clean(&bench.visitor)).has_value());
        bench.world.run_for(10ms);
    }
    REQUIRE(bench.log->space().segments == 5);
    REQUIRE(bench.segments.free.size() == 7);
    bench.close();
    REQUIRE(bench.open().clean);
}

TEST_CASE("store log: zeros ahead that find no space are left out, and the log goes on",
          "[store]") {
    Bench bench;
    bench.options.fills_holes = true;
    bench.options.segments_max = 6;
    bench.format();
    bench.open();
    bench.disk->faults().no_space_for_holes = true;
    bench.world.run_for(1s);
    const std::string text(12'000, 'g');
    // It fills what it has filled before, and would grow.
    for (int i = 0; i < 8; ++i) REQUIRE(bench.commit(text).has_value());
    REQUIRE(bench.log->failed() == nullptr);
    REQUIRE(bench.log->space().segments == 4);
    REQUIRE(bench.segments.free.size() == 8);
    bench.close();

    bench.faults.no_space_for_holes = true;
    bench.open();
    REQUIRE(bench.commit("and on").has_value());
    bench.disk->faults().no_space_for_holes = false;
    bench.log->set_segments_max(6);
    bench.world.run_for(1s);
    REQUIRE(bench.log->space().segments > 4);
    bench.close();
    REQUIRE(bench.open().clean);
}

TEST_CASE("store log: a reserve that gives up leaves the line", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    core::CancelSource cancel;
    cancel.cancel();
    std::vector<Reservation> rooms;
    for (;;) {
        auto room = bench.run(bench.log->reserve(16'000, {.cancel = &cancel}));
        if (!room) {
            REQUIRE(room.error().code == Errc::kCancelled);
            break;
        }
        rooms.push_back(std::move(*room));
    }
    REQUIRE(!rooms.empty());
    rooms.pop_back();
    REQUIRE(bench.run(bench.log->reserve(16'000, {.cancel = &cancel})).has_value());
    rooms.clear();
    bench.close();
}

TEST_CASE("store log: what only a cache held is made durable before a superblock trusts it",
          "[store]") {
    // The process ends without a flush; the next one finds the entry in the disk's cache, and then
    // the power goes, at each step of its start.
    std::uint64_t steps = 1;
    for (std::uint64_t step = 1; step <= steps; ++step) {
        Bench bench(step);
        bench.format();
        bench.open();
        Commit commit;
        bench.log->begin(commit, bench.reserve(6), bytes_of("cached"), 1, Durability::kBuffered,
                         Data::kNone);
        bench.world.run_for(20ms);
        REQUIRE(bench.image.unflushed_bytes() > 0);
        bench.plug_in();
        bench.power().cut_at(step);
        const auto opened = bench.world.run(bench.reactor(), bench.log->open(&bench.visitor, {}));
        if (bench.power().on()) {
            REQUIRE(opened->value().last_seq == 1);
            break;
        }
        steps = step + 1;
        bench.stop();
        core::Random random(step);
        bench.image.crash(random);
        CAPTURE(step);
        REQUIRE(bench.open().last_seq <= 1);
    }
    REQUIRE(steps > 8);
}

TEST_CASE("store log: what was dropped never follows what was written later", "[store]") {
    Bench bench;
    bench.options.gather_time = Duration{0};
    bench.format();
    bench.open();
    // Three entries on their way at once, none of which vouches for another.
    std::deque<Commit> commits(3);
    const std::vector<std::string> texts{"one", "two", "three"};
    for (std::size_t i = 0; i < 3; ++i) {
        bench.log->begin(commits[i], bench.reserve(5), bytes_of(texts[i]), 1, Durability::kBuffered,
                         Data::kNone);
        bench.world.run_for(1us);
    }
    bench.world.run_for(2ms);
    REQUIRE(commits.back().seq() == 3);
    bench.stop();
    bench.image.settle();
    bench.plug_in();
    bench.visitor.bad_seq = 2;
    REQUIRE(bench.run(bench.log->open(&bench.visitor, {}))->last_seq == 1);
    REQUIRE(bench.commit("TWO").has_value());
    bench.stop();
    bench.image.settle();

    REQUIRE(bench.open().last_seq == 2);
    REQUIRE(bench.visitor.texts == std::vector<std::string>{"one", "TWO"});
}

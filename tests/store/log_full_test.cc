// Goal: a log that is full refuses what adds, serves what frees as long as it can, and cleans no
// more than is worth it.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "store/cleaning_rounds.h"
#include "tests/catch.h"
#include "tests/store/log_bench.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::log_bench;

namespace {

constexpr Error kWhy{.code = Errc::kIo, .context = "said by the test"};
constexpr char kLives = 'l';
constexpr char kDead = 'd';

// Of the records, each of one letter again and again, some live for ever and the others never did.
class Keeper final : public CleanVisitor {
public:
    explicit Keeper(Log& log) : log_(log) {}
    Task<Result<void>> keep(LogEntry entry) override {
        std::string text(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
        std::erase(text, kDead);
        if (text.empty()) co_return Result<void>{};
        const auto size = static_cast<std::uint32_t>(text.size());
        auto room = co_await log_.reserve(size, {}, Purpose::kCleaning);
        if (!room) co_return std::unexpected(room.error());
        Commit commit;
        log_.begin(commit, std::move(*room), bytes_of(text), 1, Durability::kBuffered, Data::kNone);
        co_return Result<void>{};
    }

private:
    Log& log_;
};

// As often as the log wants, with an index that has everything.
struct Cleaner {
    static Task<void> run(Log* log, CleanVisitor* visitor, std::uint64_t* count) {
        for (;;) {
            const auto wanted = co_await log->wait_cleaning_wanted({});
            if (!wanted) co_return;
            const auto synced = co_await log->sync({});
            if (!synced) co_return;
            log->set_applied(log->durable_seq());
            const auto cleaned = co_await log->clean(visitor);
            if (!cleaned && cleaned.error().code != Errc::kNoSpace) co_return;
            ++*count;
        }
    }
};

Task<Result<void>> commit_for(Log* log, std::string text, Purpose purpose, core::WaitOptions wait) {
    auto room = co_await log->reserve(static_cast<std::uint32_t>(text.size()), wait, purpose);
    if (!room) co_return std::unexpected(room.error());
    Commit commit;
    log->begin(commit, std::move(*room), bytes_of(text), 1, Durability::kDurable, Data::kNone);
    co_return co_await log->durable(commit);
}

// One after the other, for ever.
struct Trickle {
    static Task<void> run(core::Reactor* reactor, Log* log, std::uint64_t* count) {
        for (;;) {
            const auto slept = co_await reactor->sleep_for(1ms);
            if (!slept) co_return;
            std::string text(10, kDead);
            const auto done = co_await commit_for(log, std::move(text), Purpose::kFreeing, {});
            if (!done) co_return;
            ++*count;
        }
    }
};

struct Waiter {
    static Task<void> run(Log* log, std::optional<Result<void>>* result) {
        const auto room = co_await log->reserve(10, {}, Purpose::kFreeing);
        *result = room ? Result<void>{} : std::unexpected(room.error());
    }
};

class FullLog : public Bench {
public:
    FullLog() : Bench(1, kDiskBytes) {
        options.segment_blocks = 64;
        options.entry_blocks_max = 16;
        segments.free.clear();
        format();
        open();
    }
    ~FullLog() { stop(); }

    Result<void> try_commit(char letter, std::size_t size, Purpose purpose) {
        const core::WaitOptions wait{.deadline = after(world.now(), 10s)};
        return run(commit_for(log.get(), std::string(size, letter), purpose, wait));
    }
    // Until who frees would have to wait for cleaning.
    void fill_without_cleaning() {
        for (const Purpose purpose : {Purpose::kAdding, Purpose::kFreeing}) {
            Result<void> done{};
            while (done) done = try_commit(kDead, 4000, purpose);
            REQUIRE(done.error().code == Errc::kTimedOut);
        }
    }

    core::Gate gate;
    std::optional<Result<void>> waiter;

private:
    static constexpr std::uint64_t kDiskBytes = (Log::kSegmentsBlock + 4 * 64) * 4096;
};

}  // namespace

TEST_CASE("store log: what was committed again before there was no room is not once more",
          "[store]") {
    struct Stuck final : CleanVisitor {
        Task<Result<void>> keep(LogEntry entry) override {
            seen.push_back(entry.seq);
            if (entry.seq != stuck_at) co_return Result<void>{};
            co_return std::unexpected(Error{.code = Errc::kNoSpace});
        }
        std::vector<std::uint64_t> seen;
        std::uint64_t stuck_at = 4;
    };
    FullLog full;
    full.fill_without_cleaning();
    full.log->set_applied(full.log->durable_seq());
    Stuck visitor;
    REQUIRE(full.run(full.log->clean(&visitor)).error().code == Errc::kNoSpace);
    REQUIRE(visitor.seen == std::vector<std::uint64_t>{1, 2, 3, 4});

    visitor.seen.clear();
    visitor.stuck_at = 0;
    REQUIRE(full.run(full.log->clean(&visitor)).has_value());
    REQUIRE(visitor.seen.front() == 4);
}

TEST_CASE("store log: one that waits for its index serves deletes as long as it can be cleaned",
          "[store]") {
    FullLog full;
    full.fill_without_cleaning();
    full.log->set_applied(full.log->durable_seq());
    full.log->stall(kWhy);
    full.reactor().spawn(full.gate, Waiter::run(full.log.get(), &full.waiter));
    full.world.run_for(1s);
    REQUIRE_FALSE(full.waiter.has_value());

    REQUIRE(full.run(full.log->clean(&full.visitor)).has_value());
    full.world.run_for(1s);
    REQUIRE(full.waiter.has_value());
    REQUIRE(full.waiter->has_value());
}

TEST_CASE("store log: one that waits for its index and cannot be cleaned says why", "[store]") {
    FullLog full;
    full.fill_without_cleaning();
    full.reactor().spawn(full.gate, Waiter::run(full.log.get(), &full.waiter));
    full.world.run_for(1s);
    REQUIRE_FALSE(full.waiter.has_value());

    full.log->stall(kWhy);
    full.world.run_for(0s);
    REQUIRE(full.waiter.has_value());
    REQUIRE(full.waiter->error().context == kWhy.context);
}

TEST_CASE("store log: a wait for room ends when reservations are refused", "[store]") {
    FullLog full;
    full.fill_without_cleaning();
    full.log->set_applied(full.log->durable_seq());
    full.reactor().spawn(full.gate, Waiter::run(full.log.get(), &full.waiter));
    full.world.run_for(1s);
    REQUIRE_FALSE(full.waiter.has_value());

    full.log->refuse(kWhy);
    full.world.run_for(0s);
    REQUIRE(full.waiter.has_value());
    REQUIRE(full.waiter->error().context == kWhy.context);
    REQUIRE(full.try_commit(kDead, 1, Purpose::kFreeing).error().context == kWhy.context);
}

TEST_CASE("store log: a trickle of deletes does not keep a full log cleaning", "[store]") {
    FullLog full;
    Keeper keeper(*full.log);
    std::uint64_t cleaned = 0;
    full.reactor().spawn(full.gate, Cleaner::run(full.log.get(), &keeper, &cleaned));
    Result<void> added{};
    while (added) added = full.try_commit(kLives, 4000, Purpose::kAdding);
    REQUIRE(added.error().code == Errc::kNoSpace);

    cleaned = 0;
    std::uint64_t trickled = 0;
    std::uint64_t refused = 0;
    full.reactor().spawn(full.gate, Trickle::run(&full.reactor(), full.log.get(), &trickled));
    for (int i = 0; i < 1000; ++i) {
        full.world.run_for(1ms);
        added = full.try_commit(kLives, 4000, Purpose::kAdding);
        REQUIRE_FALSE(added.has_value());
        if (added.error().code == Errc::kNoSpace) ++refused;
    }
    // Twelve commits are a quarter of a segment, for which a round through all of the log is worth
    // it.
    const std::uint64_t rounds_max = trickled / 12 + 1;
    CAPTURE(cleaned, trickled, refused);
    REQUIRE(trickled > 500);
    REQUIRE(refused > 900);
    REQUIRE(cleaned <= rounds_max * (full.log->space().segments + 1));
}

TEST_CASE("store log: what a round of cleaning has to gain grows with the log", "[store]") {
    constexpr std::uint64_t kQuarterOfSegment = 12;
    constexpr std::uint64_t kSixteenthOfLog = 64 * 49 / 16;
    LogSpace space({.segment_blocks = 64, .entry_blocks_max = 16});
    std::vector<LogSegment> segments(64);
    for (std::uint32_t i = 0; i < 64; ++i) segments[i] = {.number = i, .first_seq = i + 2};
    space.restore(segments, 63, 0);
    CleaningRounds rounds(space);
    // A round that ends with the next segment, while so many blocks change.
    const auto clean = [&](std::uint64_t changes) {
        rounds.begin(1);
        for (std::uint64_t i = 0; i < changes; ++i) rounds.note_commit(1);
        rounds.segment_cleaned();
    };

    clean(kSixteenthOfLog);
    REQUIRE_FALSE(rounds.is_exhausted());
    rounds.set_live_bytes(1UL << 30);
    clean(2 * kQuarterOfSegment);
    REQUIRE(rounds.is_exhausted());
    rounds.set_live_bytes((1UL << 30) - 2 * kQuarterOfSegment * devices::kBlockBytes);
    REQUIRE(rounds.is_exhausted());
    rounds.set_live_bytes((1UL << 30) - kSixteenthOfLog * devices::kBlockBytes);
    REQUIRE_FALSE(rounds.is_exhausted());
}

TEST_CASE("store log: one that could go on takes no segment as if it could not", "[store]") {
    FullLog full;
    Keeper keeper(*full.log);
    std::uint64_t cleaned = 0;
    full.reactor().spawn(full.gate, Cleaner::run(full.log.get(), &keeper, &cleaned));
    {
        // May be returned, so that whoever finds no room waits.
        const Reservation held = full.reserve(10);
        for (const Purpose purpose : {Purpose::kAdding, Purpose::kFreeing}) {
            Result<void> done{};
            while (done) done = full.try_commit(kLives, 4000, purpose);
            REQUIRE(done.error().code == Errc::kTimedOut);
        }
    }
    REQUIRE(full.segments.needs.back() == SegmentNeed::kToGoOn);

    full.segments.needs.clear();
    static_cast<void>(full.try_commit(kLives, 10, Purpose::kAdding));
    REQUIRE(full.segments.needs.front() == SegmentNeed::kMore);
}

TEST_CASE("store log: an attempt to clean what its index does not hold begins no round",
          "[store]") {
    // With an index that has as little as it can.
    struct LateCleaner {
        static Task<void> run(Log* log, CleanVisitor* visitor) {
            for (std::uint64_t applied = 0;;) {
                const auto wanted = co_await log->wait_cleaning_wanted({});
                if (!wanted) co_return;
                const auto cleaned = co_await log->clean(visitor);
                if (!cleaned && cleaned.error().code == Errc::kBusy) log->set_applied(++applied);
            }
        }
    };
    FullLog full;
    Keeper keeper(*full.log);
    full.reactor().spawn(full.gate, LateCleaner::run(full.log.get(), &keeper));
    Result<void> added{};
    while (added) added = full.try_commit(kLives, 4000, Purpose::kAdding);
    REQUIRE(added.error().code == Errc::kNoSpace);
    REQUIRE_FALSE(full.log->cleaning_wanted());

    REQUIRE(full.run(full.log->clean(&keeper)).error().code == Errc::kBusy);
    REQUIRE_FALSE(full.log->cleaning_wanted());
}

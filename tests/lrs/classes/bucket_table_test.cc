// Goal: a class has one bucket however many ask for it, and memory is bounded.
// Method: one thread for what is promised; then many threads that come and go, each class's bucket
// being told apart by what was taken from it.

#include "lrs/classes/bucket_table.h"

#include <array>
#include <atomic>
#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

constexpr HashKey kKey{.first = 1, .second = 2};

ClassHash hash_of(std::uint64_t number) {
    KeyedHash hash(kKey);
    hash.add(number);
    return hash.result();
}

Paces one_at_once() {
    Limits limits;
    limits.operations = Limit{.per_second = 1, .burst = 1};
    return Paces(limits);
}

bool take(Bucket& bucket, const Paces& paces, Ticks now) {
    return bucket.take(now, now, {.operation = paces.operations.cost_of(1), .bytes = 0}, paces);
}

}  // namespace

TEST_CASE("lrs bucket table: a class has one bucket, and each class its own", "[lrs]") {
    BucketTable table(kKey, 1000);
    std::set<Bucket*> buckets;
    for (std::uint64_t number = 0; number < 300; ++number) {
        Bucket* const bucket = table.acquire(hash_of(number), 0);
        REQUIRE(bucket != nullptr);
        CHECK(table.acquire(hash_of(number), 0) == bucket);
        CHECK(buckets.insert(bucket).second);
    }
    CHECK(table.count() == 300);
}

TEST_CASE("lrs bucket table: a bucket in debt is not forgotten", "[lrs]") {
    BucketTable table(kKey, 8);
    const Paces paces = one_at_once();
    const Ticks now = ticks_at(Instant{10s});
    Bucket* const bucket = table.acquire(hash_of(1), now);
    REQUIRE(take(*bucket, paces, now));
    table.release(*bucket);
    // Others want its place.
    for (std::uint64_t number = 100; number < 200; ++number) {
        if (Bucket* const other = table.acquire(hash_of(number), now)) table.release(*other);
    }

    Bucket* const again = table.acquire(hash_of(1), now);

    CHECK(again == bucket);
    CHECK_FALSE(take(*again, paces, now));
}

TEST_CASE("lrs bucket table: full and unused buckets are replaced", "[lrs]") {
    BucketTable table(kKey, 8);
    const Paces paces = one_at_once();
    const Ticks later = ticks_at(Instant{100s});
    for (std::uint64_t number = 0; number < 8; ++number) {
        Bucket* const bucket = table.acquire(hash_of(number), 0);
        if (bucket == nullptr) continue;
        take(*bucket, paces, 0);
        table.release(*bucket);
    }
    std::size_t made = 0;
    for (std::uint64_t number = 100; number < 1000; ++number) {
        Bucket* const bucket = table.acquire(hash_of(number), later);
        if (bucket == nullptr) continue;
        ++made;
        CHECK(take(*bucket, paces, later));
        // In use, or owed, it stays.
        if (table.count() < 8) table.release(*bucket);
    }
    CHECK(made == 8);
    CHECK(table.count() == 8);
}

TEST_CASE("lrs bucket table: a full table is reported", "[lrs]") {
    BucketTable table(kKey, 4);
    std::size_t made = 0;
    for (std::uint64_t number = 0; number < 100; ++number) {
        if (table.acquire(hash_of(number), 0) != nullptr) ++made;
    }
    CHECK(made == 4);
}

TEST_CASE("lrs bucket table: threads that come and go share each class's bucket", "[lrs]") {
    constexpr std::size_t kThreadCount = 4;
    constexpr std::uint64_t kClassCount = 40;
    constexpr int kRoundCount = 300;
    // Fewer places than classes, so that they are taken from one and given to another all the time.
    BucketTable table(kKey, 24);
    const Paces paces = one_at_once();
    // In each second of a time that all have in common each class may be served once.
    constexpr std::size_t kSecondCount = 50;
    std::array<std::array<std::atomic<int>, kClassCount>, kSecondCount> served{};
    std::barrier next_second(static_cast<std::ptrdiff_t>(kThreadCount));

    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < kThreadCount; ++index) {
        threads.emplace_back([&, index] {
            core::Random random(index + 1);
            for (std::size_t second = 0; second < kSecondCount; ++second) {
                const Ticks now = static_cast<Ticks>(second + 1) * kTicksPerSecond;
                for (int round = 0; round < kRoundCount; ++round) {
                    const std::uint64_t number = random.below(kClassCount);
                    Bucket* const bucket = table.acquire(hash_of(number), now);
                    if (bucket == nullptr) continue;
                    if (take(*bucket, paces, now)) served[second][number].fetch_add(1);
                    table.release(*bucket);
                }
                next_second.arrive_and_wait();
            }
        });
    }
    for (auto& thread : threads) thread.join();

    int most = 0;
    int all = 0;
    for (const auto& in_second : served) {
        for (const auto& of_class : in_second) {
            most = std::max(most, of_class.load());
            all += of_class.load();
        }
    }
    CHECK(most == 1);
    CHECK(all > 100);
}

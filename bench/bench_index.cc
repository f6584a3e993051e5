// Measures the cost of the index to a store: extents of single blocks, written in random order.
//
//     bench_index [directory]
//
// prints a line for each figure; under 60 seconds. The index is made in the directory, or in /tmp,
// and removed.

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <time.h>

#include "bench/measure.h"
#include "core/offload.h"
#include "core/poll_backend.h"
#include "core/random.h"
#include "core/reactor.h"
#include "store/lmdb_index.h"
#include "store/object_map.h"

namespace fopd::store {
namespace {

using bench::fail;
using bench::kClock;

constexpr std::uint64_t kExtents = 1'000'000;
constexpr std::uint64_t kCheckpoints = 4;
constexpr std::uint64_t kRecent = 250'000;
constexpr std::uint64_t kLookups = 1'000'000;
constexpr Fid kFid{.high = 1, .low = 2};

template <typename T>
T must(Result<T> result) {
    if (!result) fail(describe(result.error()));
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double timed(const std::function<void()>& run) {
    const Instant start = kClock.now();
    run();
    return in_seconds(kClock.now() - start);
}

double thread_seconds() {
    timespec now{};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) fail("no clock of CPU time");
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Of the calling thread's CPU time.
double worked(const std::function<void()>& run) {
    const double start = thread_seconds();
    run();
    return thread_seconds() - start;
}

void print(const char* what, double value, const char* unit) {
    std::printf("%-52s %10.3f %s\n", what, value, unit);
    std::fflush(stdout);
}

std::vector<std::uint64_t> shuffled(core::Random& random) {
    std::vector<std::uint64_t> numbers(kExtents);
    std::iota(numbers.begin(), numbers.end(), 0);
    for (std::uint64_t i = kExtents; i > 1; --i)
        std::swap(numbers[i - 1], numbers[random.below(i)]);
    return numbers;
}

class Counter final : public MapVisitor {
public:
    Result<void> extent(const StoredExtent&) override {
        ++count;
        return {};
    }
    std::uint64_t count = 0;
};

class Bench {
public:
    explicit Bench(const std::string& directory) : random_(1) {
        options_.path = directory + "/bench_index.mdb";
        reactor_ = std::make_unique<core::Reactor>(must(core::make_poll_backend(kClock)));
        offload_ = must(core::make_thread_offload({}));
    }
    ~Bench() {
        std::filesystem::remove(options_.path);
        std::filesystem::remove(options_.path + "-lock");
    }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;

    void run() {
        fill();
        print("bytes of the index for an extent of one block",
              static_cast<double>(index_->figures().size_bytes) / kExtents, "B");
        print("bytes of its file for each",
              static_cast<double>(std::filesystem::file_size(options_.path)) / kExtents, "B");
        look_up("lookup, CPU, nothing recent");
        reopen();
        look_up("lookup, CPU, nothing recent, opened again");
        overwrite_some();
        look_up("lookup, CPU, 250 000 recent changes");
    }

private:
    LmdbIndex::World world() { return {.reactor = *reactor_, .offload = *offload_}; }

    void start(std::unique_ptr<LmdbIndex> index) {
        map_.reset();
        layers_.reset();
        index_ = std::move(index);
        layers_ = std::make_unique<LayeredIndex>(*index_);
        map_ = std::make_unique<ObjectMap>(*reactor_, *layers_);
    }

    void insert(std::uint64_t number) {
        const auto checksum = static_cast<std::uint32_t>(number);
        // No neighbours on the disk, so that none are joined.
        must(map_->insert(
            kFid, {.first = number, .block = next_block_, .checksums = {&checksum, 1}}, freed_));
        next_block_ += 2;
        freed_.clear();
    }

    void fill() {
        start(must(reactor_->run_until_done(LmdbIndex::create(world(), options_))));
        const auto numbers = shuffled(random_);
        double inserting = 0;
        double applying = 0;
        std::size_t recent_bytes = 0;
        for (std::uint64_t part = 0; part < kCheckpoints; ++part) {
            constexpr auto kPart = kExtents / kCheckpoints;
            inserting += worked([&] {
                for (auto i = part * kPart; i < (part + 1) * kPart; ++i) insert(numbers[i]);
            });
            recent_bytes = layers_->changed_bytes();
            applying +=
                timed([&] { must(reactor_->run_until_done(layers_->checkpoint(part + 1))); });
        }
        print("insert, CPU", inserting / kExtents * 1e6, "us");
        print("checkpoint, for each change", applying / kExtents * 1e6, "us");
        print("memory of a recent change",
              static_cast<double>(recent_bytes) * kCheckpoints / kExtents, "B");
    }

    void reopen() {
        map_.reset();
        layers_.reset();
        index_.reset();
        std::unique_ptr<LmdbIndex> index;
        const double opening = timed(
            [&] { index = must(reactor_->run_until_done(LmdbIndex::open(world(), options_))); });
        start(std::move(index));
        print("open, with the file looked through", opening, "s");
        Counter counter;
        const double walking = timed(
            [&] { must(reactor_->run_until_done(map_->for_each(KeyKind::kExtent, &counter))); });
        if (counter.count != kExtents) fail("extents are missing");
        print("all extents shown", walking, "s");
    }

    void overwrite_some() {
        const double inserting = worked([&] {
            for (std::uint64_t i = 0; i < kRecent; ++i) insert(random_.below(kExtents));
        });
        print("overwrite, CPU", inserting / kRecent * 1e6, "us");
    }

    void look_up(const char* what) {
        std::vector<std::uint64_t> numbers(kLookups);
        for (auto& number : numbers) number = random_.below(kExtents);
        std::uint64_t sum = 0;
        const double looking = worked([&] {
            for (const auto number : numbers) {
                auto extents = map_->extents(kFid, {.first = number, .count = 1});
                const auto extent = must(extents.next());
                if (!extent) fail("an extent is missing");
                sum += extent->block;
                map_->release();
            }
        });
        if (sum == 0) fail("no block was found");
        print(what, looking / kLookups * 1e6, "us");
    }

    core::Random random_;
    LmdbIndex::Options options_;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<core::Offload> offload_;
    std::unique_ptr<LmdbIndex> index_;
    std::unique_ptr<LayeredIndex> layers_;
    std::unique_ptr<ObjectMap> map_;
    std::vector<DiskRange> freed_;
    std::uint64_t next_block_ = 0;
};

}  // namespace
}  // namespace fopd::store

int main(int argument_count, char** arguments) {
    fopd::store::Bench(argument_count > 1 ? arguments[1] : "/tmp").run();
    return 0;
}

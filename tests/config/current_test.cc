// Goal: readers see a reload as a whole or not at all, and never wait.
#include "config/current.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "config/types.h"
#include "tests/catch.h"
#include "tests/config/example_schema.h"

using namespace fopd;
using namespace fopd::config;

namespace {

const Schema kSchema = example::schema();

SnapshotPtr load(const std::string& text) {
    const auto loaded = kSchema.load_text(text, "f.yaml");
    if (!loaded) FAIL(to_string(loaded.error().front()));
    return *loaded;
}

// The least that can change at run time.
struct Switch {
    bool is_on = false;
};

Schema switch_schema() {
    Section<Switch> section("switch", "A switch.");
    section.field("is_on", &Switch::is_on, boolean(), "Whether it is on.",
                  {.reload = Reload::kLive});
    Schema schema;
    schema.add(std::move(section));
    return schema;
}

// Two live keys in two sections that always go together.
SnapshotPtr numbered(int number) {
    const std::string text = std::to_string(number);
    return load("node: {motto: \"" + text + "\"}\nlimits: {foms_max: " + text + "}");
}

bool is_whole(const Snapshot& snapshot) {
    const auto& limits = snapshot.get<example::Limits>();
    return snapshot.get<example::Node>().motto == std::to_string(limits.foms_max);
}

}  // namespace

TEST_CASE("config current: apply changes live keys and lists those that need a restart",
          "[config]") {
    Current current(load(""));
    auto reader = current.reader();

    const auto applied = current.apply(load("node: {name: b, motto: b}"));

    REQUIRE(applied.live.size() == 1);
    REQUIRE(applied.live[0].path == "node.motto");
    REQUIRE(applied.waiting.size() == 1);
    REQUIRE(applied.waiting[0].path == "node.name");
    REQUIRE(reader.snapshot().get<example::Node>().motto == "b");
    REQUIRE(reader.snapshot().get<example::Node>().name == "node-a");
    REQUIRE(reader.pointer() == current.snapshot());
}

TEST_CASE("config current: a reload without live changes leaves the snapshot in place",
          "[config]") {
    Current current(load(""));
    const SnapshotPtr before = current.snapshot();

    const auto applied = current.apply(load("node: {name: b}"));

    REQUIRE(applied.live.empty());
    REQUIRE(applied.waiting.size() == 1);
    REQUIRE(current.snapshot() == before);
}

TEST_CASE("config current: a snapshot ends with its last reader", "[config]") {
    Current current(numbered(1));
    std::weak_ptr<const Snapshot> first = current.snapshot();
    auto reader = current.reader();
    auto late_reader = reader;

    current.apply(numbered(2));
    reader.snapshot();
    REQUIRE_FALSE(first.expired());
    late_reader.snapshot();
    REQUIRE(first.expired());
}

TEST_CASE("config current: a reader outlives what it reads from", "[config]") {
    auto current = std::make_unique<Current>(numbered(1));
    auto reader = current->reader();
    current->apply(numbered(2));
    current.reset();

    REQUIRE(reader.snapshot().get<example::Limits>().foms_max == 2);
}

TEST_CASE("config current: a reader that slept through many reloads ends well", "[config]") {
    const Schema schema = switch_schema();
    const SnapshotPtr off = *schema.load_text("", "f.yaml");
    const SnapshotPtr on = *schema.load_text("switch: {is_on: true}", "f.yaml");
    Current current(off);
    std::optional sleeper = current.reader();
    // Enough to overflow the stack if each version ended the next.
    for (int count = 0; count < 300'001; ++count) current.apply(count % 2 == 0 ? on : off);

    SECTION("when it wakes up") {
        REQUIRE(sleeper->snapshot().get<Switch>().is_on);
    }
    SECTION("when it is replaced") {
        sleeper = current.reader();
        REQUIRE(sleeper->snapshot().get<Switch>().is_on);
    }
    SECTION("when it ends") {
        sleeper.reset();
        REQUIRE(current.reader().snapshot().get<Switch>().is_on);
    }
}

TEST_CASE("config current: threads see each reload whole and in order", "[config]") {
    constexpr int kReloads = 300;
    constexpr int kThreads = 3;
    Current current(numbered(1));
    std::atomic<int> torn{0};
    std::atomic<int> backwards{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, reader = current.reader()]() mutable {
            std::uint32_t last = 0;
            while (last < kReloads) {
                const Snapshot& snapshot = reader.snapshot();
                const std::uint32_t seen = snapshot.get<example::Limits>().foms_max;
                if (!is_whole(snapshot)) ++torn;
                if (seen < last) ++backwards;
                last = seen;
                std::this_thread::yield();
            }
        });
    }
    for (int number = 2; number <= kReloads; ++number) current.apply(numbered(number));
    for (std::thread& thread : threads) thread.join();

    REQUIRE(torn == 0);
    REQUIRE(backwards == 0);
}

#include "io_sched/settings.h"

#include <string>

#include "config/schema.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::io_sched;

namespace {

std::expected<config::SnapshotPtr, config::Problems> load(const std::string& text) {
    config::Schema schema;
    schema.add(io_sched_section());
    return schema.load_text(text, "fopd.yaml");
}

const Algorithm* chosen(const IoSchedSettings& settings, std::size_t type) {
    const std::array algorithms{settings.read_algo, settings.write_algo, settings.format_algo};
    return algorithms[type];
}

}  // namespace

TEST_CASE("io_sched settings: each algorithm can be named for what it serves, and for nothing else",
          "[io_sched]") {
    for (const Algorithm& row : algorithms()) {
        for (std::size_t type = 0; type < kIoTypeCount; ++type) {
            CAPTURE(row.name, kIoTypeNames[type]);
            const auto loaded = load("io_sched: { " + std::string(kIoTypeNames[type]) +
                                     "_algo: " + std::string(row.name) + " }");
            REQUIRE(loaded.has_value() == row.serves[type]);
            if (loaded) CHECK(chosen((*loaded)->get<IoSchedSettings>(), type) == &row);
        }
    }
}

TEST_CASE("io_sched settings: without a word all is fifo and shared", "[io_sched]") {
    const auto loaded = load("");
    REQUIRE(loaded.has_value());
    const auto& settings = (*loaded)->get<IoSchedSettings>();
    for (std::size_t type = 0; type < kIoTypeCount; ++type) {
        CHECK(chosen(settings, type)->name == "fifo");
    }
    CHECK(settings.dispatch_algo->name == "none");
    CHECK(settings.request_algo->name == "fifo");
    CHECK_FALSE(settings.latency_goal.has_value());
}

TEST_CASE("io_sched settings: the other keys are read", "[io_sched]") {
    const auto loaded = load(
        "io_sched: { dispatch_algo: none, request_algo: fifo, elevator_max_wait: 2s, "
        "latency_goal: 5ms, depth_max: 8 }");
    REQUIRE(loaded.has_value());
    const auto& settings = (*loaded)->get<IoSchedSettings>();
    CHECK(settings.elevator_max_wait == 2s);
    CHECK(settings.latency_goal == 5ms);
    CHECK(settings.depth_max == 8);
}

TEST_CASE("io_sched settings: unknown or invalid values are refused", "[io_sched]") {
    CHECK_FALSE(load("io_sched: { read_algo: grouped_read }").has_value());
    CHECK_FALSE(load("io_sched: { dispatch_algo: fair_share }").has_value());
    CHECK_FALSE(load("io_sched: { request_algo: lifo }").has_value());
    CHECK_FALSE(load("io_sched: { fifo_max_wait: 1s }").has_value());
    CHECK_FALSE(load("io_sched: { depth_max: 0 }").has_value());
    CHECK_FALSE(load("io_sched: { latency_goal: 0s }").has_value());
}

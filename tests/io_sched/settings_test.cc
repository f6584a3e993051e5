#include "io_sched/settings.h"

#include <string>
#include <vector>

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

TEST_CASE("io_sched settings: tape drives have algorithms of their own", "[io_sched]") {
    const auto loaded = load(
        "io_sched: { read_algo: elevator, tape: { read_algo: grouped_read, write_algo: "
        "grouped_write, dispatch_algo: fair_share, fair_share_weights: '40,40,20', request_algo: "
        "fair_share, request_fair_share_weights: '40, 50, 10', grouped_read_order: sltf, "
        "grouped_read_max_wait: 5min, fair_share_limits: [ { technology: lto9, min: '1,1,0', max: "
        "'4,4,0' } ] } }");
    REQUIRE(loaded.has_value());
    const auto& settings = (*loaded)->get<IoSchedSettings>();
    CHECK(settings.read_algo->name == "elevator");
    CHECK(settings.dispatch_algo->name == "none");
    CHECK(settings.tape.read_algo->name == "grouped_read");
    CHECK(settings.tape.write_algo->name == "grouped_write");
    CHECK(settings.tape.format_algo->name == "fifo");
    CHECK(settings.tape.dispatch_algo->name == "fair_share");
    CHECK(settings.tape.fair_share_weights == DriveCounts{40, 40, 20});
    CHECK(settings.tape.request_fair_share_weights == DriveCounts{40, 50, 10});
    CHECK(settings.tape.grouped_read_order == ReadOrder::kSltf);
    CHECK(settings.tape.grouped_read_max_wait == 5min);
    const FairShareOptions options = settings.tape.fair_share();
    CHECK(options.limits.at("lto9").min == DriveCounts{1, 1, 0});
    CHECK(options.limits.at("lto9").max == DriveCounts{4, 4, 0});
    CHECK(settings.tape.lacks_limits_for("lto8"));
    CHECK_FALSE(settings.tape.lacks_limits_for("lto9"));
    CHECK_FALSE(TapeSettings{}.lacks_limits_for("lto9"));
}

TEST_CASE("io_sched settings: each algorithm for drives can be named for what it serves only",
          "[io_sched]") {
    for (const DriveAlgorithm& row : drive_algorithms()) {
        for (std::size_t type = 0; type < kIoTypeCount; ++type) {
            CAPTURE(row.name, kIoTypeNames[type]);
            const auto loaded = load("io_sched: { tape: { " + std::string(kIoTypeNames[type]) +
                                     "_algo: " + std::string(row.name) + " } }");
            CHECK(loaded.has_value() == row.serves[type]);
        }
    }
}

TEST_CASE(
    "io_sched settings: limits and algorithms for drives that are wrong are refused where they "
    "stand",
    "[io_sched]") {
    const std::vector<std::string> wrong{
        "{ read_algo: elevator }",
        "{ read_algo: grouped_write }",
        "{ dispatch_algo: faire_share }",
        "{ request_algo: round_robin }",
        "{ grouped_read_order: random }",
        "{ fair_share_weights: '1,2' }",
        "{ fair_share_weights: '1,2,x' }",
        "{ fair_share_weights: '1,0,1' }",
        "{ fair_share_weights: '0,0,0' }",
        "{ fair_share_weights: '1,1,1001' }",
        "{ request_fair_share_weights: '0,1,1' }",
        "{ fair_share_limits: [ { technology: lto9, min: '1,1,0' } ] }",
        "{ fair_share_limits: [ { technology: lto9, max: '1,1,0' } ] }",
        "{ fair_share_limits: [ { technology: lto5, min: '0,0,0', max: '1,1,1' } ] }",
        "{ fair_share_limits: [ { technology: lto9, min: '-1,0,0', max: '1,1,1' } ] }",
        "{ fair_share_limits: [ { technology: lto9, min: '2,0,0', max: '1,1,1' } ] }",
        "{ fair_share_limits: [ { technology: lto9, min: '0,0,0', max: '1,1,1' }, "
        "{ technology: lto9, min: '0,0,0', max: '1,1,1' } ] }",
    };
    for (const std::string& tape : wrong) {
        CAPTURE(tape);
        const auto loaded = load("io_sched:\n  tape: " + tape + "\n");
        REQUIRE_FALSE(loaded.has_value());
        CHECK(loaded.error().front().position.line == 2);
        CHECK(loaded.error().front().key.starts_with("io_sched.tape."));
    }
    const auto zero = load("io_sched: { tape: { fair_share_weights: '2,0,1' } }");
    REQUIRE_FALSE(zero.has_value());
    CHECK(zero.error().front().wrong == "0 is not from 1 to 1000");
    // Devices of disks are not divided.
    CHECK_FALSE(load("io_sched: { dispatch_algo: fair_share }").has_value());
    CHECK(load("io_sched: { request_algo: fair_share }").has_value());
}

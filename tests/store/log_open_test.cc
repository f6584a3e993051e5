// Goal: what the log does when it is opened: where replay begins, which damage and which foreign
// disks it notices, and what it refuses. Method: a simulated disk that is changed between two
// openings.
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

TEST_CASE("store log: replay begins behind what the index holds", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    const std::string long_text(10'000, 'y');  // Three blocks: several segments.
    for (int i = 0; i < 8; ++i) {
        REQUIRE(bench.commit(std::to_string(i) + long_text).has_value());
    }
    bench.close();
    const Replayed replayed = bench.open({.applied_seq = 6});
    REQUIRE(replayed.last_seq == 8);
    REQUIRE(replayed.clean);
    REQUIRE(bench.visitor.texts == std::vector<std::string>{"6" + long_text, "7" + long_text});
    bench.close();
    bench.open({.applied_seq = 8});
    REQUIRE(bench.visitor.texts.empty());
}

TEST_CASE("store log: a flipped bit in what was flushed is found and named, and nothing is written",
          "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    for (int i = 1; i <= 6; ++i) REQUIRE(bench.commit("text " + std::to_string(i)).has_value());
    const bool closed = GENERATE(false, true);
    if (closed) bench.close();
    bench.stop();
    bench.image.flip_bit(bench.byte_of(0, 2) + 66, 3);  // Entry 3.

    const auto opened = bench.try_open();
    REQUIRE(!opened.has_value());
    REQUIRE(opened.error().code == Errc::kCorrupt);
    REQUIRE(bench.log->damage().first_seq == 3);
    REQUIRE(bench.log->damage().last_seq >= 5);
    REQUIRE(bench.visitor.texts.empty());
    REQUIRE(bench.disk->counts().writes == 0);

    // Read-only, what lies before it is to be had.
    const Replayed replayed = bench.open({.mode = ReplayOptions::Mode::kReadOnly});
    REQUIRE(replayed.last_seq == 2);
    REQUIRE(bench.log->damage().first_seq == 3);
    REQUIRE(bench.visitor.texts == std::vector<std::string>{"text 1", "text 2"});
    REQUIRE(bench.disk->counts().writes == 0);
    REQUIRE(bench.run(bench.log->close()).has_value());
    REQUIRE(bench.disk->counts().writes == 0);
}

TEST_CASE("store log: an older copy of the disk is not taken for the disk", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    REQUIRE(bench.commit("early").has_value());
    bench.close();
    const devices::DiskImage older = bench.image;
    bench.open();
    REQUIRE(bench.commit("later").has_value());
    REQUIRE(bench.commit("latest").has_value());
    const std::uint64_t applied = bench.log->durable_seq();
    bench.close();
    bench.stop();
    bench.image = older;

    REQUIRE(bench.refusal({.applied_seq = applied}) == Errc::kCorrupt);
    REQUIRE(bench.disk->counts().writes == 0);
    REQUIRE(bench.log->damage().last_seq == applied);
}

TEST_CASE("store log: one damaged superblock is mended, two are not guessed at", "[store]") {
    Bench bench;
    bench.format();
    bench.open();
    REQUIRE(bench.commit("here").has_value());
    bench.close();
    bench.stop();
    const auto copy = GENERATE(0U, 1U);
    bench.image.flip_bit((copy + 1) * kSuperblockBytes + 40, 0);
    REQUIRE(bench.open().clean);
    REQUIRE(bench.visitor.texts == std::vector<std::string>{"here"});
    bench.close();
    bench.stop();
    bench.image.flip_bit((2 - copy) * kSuperblockBytes + 40, 0);
    REQUIRE(bench.open().clean);
    bench.close();
    bench.stop();
    bench.image.flip_bit(kSuperblockBytes + 40, 0);
    bench.image.flip_bit(2 * kSuperblockBytes + 40, 0);
    REQUIRE(bench.refusal() == Errc::kCorrupt);
}

TEST_CASE("store log: it is known with which entry each of the last epochs ended", "[store]") {
    constexpr std::uint64_t kKnown = 6;
    Bench bench;
    bench.format();
    std::map<std::uint64_t, std::uint64_t> ends;
    for (int life = 0; life < 12; ++life) {
        const Replayed replayed = bench.open();
        const std::uint64_t epoch = bench.log->epoch();
        ends[epoch - 1] = replayed.last_seq;
        for (const auto& [earlier, end] : ends) {
            CAPTURE(epoch, earlier, end);
            const auto last = bench.log->last_seq_of(earlier);
            REQUIRE(last.has_value() == (earlier + kKnown >= epoch));
            if (last) REQUIRE(*last == end);
        }
        REQUIRE_FALSE(bench.log->last_seq_of(epoch).has_value());
        if (life % 3 > 0) REQUIRE(bench.commit("text").has_value());
        if (life % 2 == 0) bench.close();
    }
}

TEST_CASE("store log: another log or none is refused with its reason", "[store]") {
    Bench bench;
    REQUIRE(bench.refusal() == Errc::kNotFound);
    bench.format();
    SECTION("another disk's") {
        bench.options.disk_id.fill(std::byte{1});
        REQUIRE(bench.refusal() == Errc::kDenied);
    }
    SECTION("a newer store's") {
        bench.options.schema.version = 0;
        REQUIRE(bench.refusal() == Errc::kUnsupported);
    }
    SECTION("a disk that was cut off") {
        bench.stop();
        bench.image.resize(bench.byte_of(3, 0));
        REQUIRE(bench.refusal() == Errc::kCorrupt);
    }
    SECTION("a log whose index is of an older time") {
        bench.open();
        const std::string text(12'000, 'z');
        while (!bench.log->cleaning_wanted()) REQUIRE(bench.commit(text).has_value());
        bench.log->set_applied(bench.log->durable_seq());
        REQUIRE(bench.run(bench.log->clean(&bench.visitor)).has_value());
        REQUIRE(bench.visitor.cleaned.front() == 1);
        bench.close();
        REQUIRE(bench.refusal({.applied_seq = 1}) == Errc::kInvalid);
        REQUIRE(bench.open().clean);
    }
}

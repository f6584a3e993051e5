// Goal: the model of tape drives gives the times that were measured and published.
#include "devices/tape/drive_model.h"

#include <algorithm>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::devices;

namespace {

const DriveModel& lto9() {
    return *find_drive_model("lto9");
}

PhysicalPosition random_position(const DriveModel& model, core::Random& random) {
    return position_of_byte(model, random.below(model.capacity_bytes));
}

// A position in a wrap, so many thousandths of the tape's length from its beginning.
PhysicalPosition position(const DriveModel& model, std::uint32_t wrap, std::uint64_t thousandths) {
    return {.wrap = wrap, .lpos = model.lpos_begin + model.lpos_length * thousandths / 1000};
}

bool is_near(Duration one, Duration other, Duration error) {
    return one >= other - error && one <= other + error;
}

// The time of `count` writes of `size_bytes` each, which the host begins `gap` after the last.
Instant write_many(WriteStream& stream, Instant now, int count, std::uint64_t size_bytes,
                   Duration gap) {
    for (int i = 0; i < count; ++i) now = stream.write(now, size_bytes) + gap;
    return now;
}

}  // namespace

TEST_CASE("devices drive model: each generation has a row, and no other name has one",
          "[devices]") {
    for (const char* const name : {"lto6", "lto7", "lto8", "lto9", "lto10"}) {
        REQUIRE(find_drive_model(name) != nullptr);
        REQUIRE(find_drive_model(name)->technology == name);
    }
    REQUIRE(find_drive_model("lto5") == nullptr);
    REQUIRE(find_drive_model("LTO9") == nullptr);
    REQUIRE(find_drive_model("") == nullptr);
    REQUIRE(lto9().capacity_bytes == 18'000'000'000'000);
    REQUIRE(lto9().wraps == 280);
}

TEST_CASE("devices drive model: a drive reads and writes some older cartridges", "[devices]") {
    REQUIRE(can_write("lto9", "lto9"));
    REQUIRE(can_write("lto9", "lto8"));
    REQUIRE_FALSE(can_read("lto9", "lto7"));
    REQUIRE_FALSE(can_read("lto8", "lto9"));
    REQUIRE(can_read("lto8", "lto7"));
    REQUIRE_FALSE(can_read("lto8", "lto6"));
    REQUIRE_FALSE(can_read("lto10", "lto9"));
    REQUIRE(can_write("lto7", "lto6"));
    REQUIRE_FALSE(can_read("lto9", "dds4"));
    REQUIRE_FALSE(can_read("", ""));
}

TEST_CASE("devices drive model: bytes fill the wraps there and back", "[devices]") {
    const DriveModel& model = lto9();
    const std::uint64_t end = model.lpos_begin + model.lpos_length;
    const std::uint64_t wrap_bytes = model.capacity_bytes / model.wraps;

    REQUIRE(position_of_byte(model, 0) == beginning_of(model));
    REQUIRE(position_of_byte(model, wrap_bytes / 2).wrap == 0);
    REQUIRE(position_of_byte(model, wrap_bytes / 2).lpos ==
            model.lpos_begin + model.lpos_length / 2);
    REQUIRE(position_of_byte(model, wrap_bytes + 1) == PhysicalPosition{.wrap = 1, .lpos = end});
    REQUIRE(position_of_byte(model, 2 * wrap_bytes + 2).wrap == 2);
    REQUIRE(position_of_byte(model, 2 * wrap_bytes + 2).lpos == model.lpos_begin);
    // The last wrap runs back to the beginning.
    REQUIRE(position_of_byte(model, model.capacity_bytes) ==
            PhysicalPosition{.wrap = 279, .lpos = model.lpos_begin});
    REQUIRE(position_of_byte(model, 2 * model.capacity_bytes) ==
            position_of_byte(model, model.capacity_bytes));
}

TEST_CASE("devices drive model: a small cartridge has the same wraps with fewer bytes",
          "[devices]") {
    const DriveModel small = with_capacity(lto9(), 280'000);

    REQUIRE(position_of_byte(small, 1'000) ==
            position_of_byte(lto9(), lto9().capacity_bytes / 280 + 1));
    REQUIRE(position_of_byte(small, 279'999).wrap == 279);
}

TEST_CASE("devices drive model: a locate costs its parts", "[devices]") {
    const DriveModel& model = lto9();
    const auto time = [&](PhysicalPosition from, PhysicalPosition to) {
        return locate_time(model, from, to);
    };
    const PhysicalPosition here = position(model, 0, 100);

    REQUIRE(time(here, here) == 0s);
    REQUIRE(time(here, {.wrap = 0, .lpos = here.lpos + 1000}) == 4'290ms + 619'200us);
    REQUIRE(time({.wrap = 0, .lpos = here.lpos + 1000}, here) == 4'290ms + 619'200us + 11'320ms);
    // Backward in a wrap that runs backward is ahead.
    REQUIRE(time({.wrap = 1, .lpos = here.lpos + 1000}, {.wrap = 1, .lpos = here.lpos}) ==
            4'290ms + 619'200us);
    REQUIRE(time(here, {.wrap = 2, .lpos = here.lpos}) == 4'290ms + 6'690ms);
    REQUIRE(time(here, {.wrap = 1, .lpos = here.lpos}) == 4'290ms + 6'690ms + 5'220ms);
    REQUIRE(time(here, {.wrap = 70, .lpos = here.lpos}) == 4'290ms + 6'690ms + 3'200ms);
    REQUIRE(time(here, {.wrap = 69, .lpos = here.lpos}) == 4'290ms + 6'690ms + 5'220ms);
    // The other half of the tape is reached at full speed; no time is negative.
    const std::uint64_t middle = model.lpos_begin + model.lpos_length / 2;
    REQUIRE(time({.wrap = 0, .lpos = middle - 1}, {.wrap = 0, .lpos = middle}) == 0s);
    REQUIRE(time({.wrap = 0, .lpos = middle - 10'000}, {.wrap = 0, .lpos = middle}) ==
            4'290ms + 6'192ms - 6'040ms);
}

TEST_CASE("devices drive model: the whole length of the tape takes 104 s", "[devices]") {
    const Duration length = lto9().costs.per_lpos * static_cast<int>(lto9().lpos_length);

    REQUIRE(is_near(length, 104s, 500ms));
}

TEST_CASE("devices drive model: mean locate and rewind times are near the published ones",
          "[devices]") {
    struct Published {
        const char* technology;
        Duration locate;
        Duration rewind;
    };
    // Of LTO-9 the slower of the two published figures, of half-height drives.
    constexpr std::array kPublished{Published{"lto6", 62s, 60s}, Published{"lto7", 56s, 60s},
                                    Published{"lto8", 59s, 59s}, Published{"lto9", 65s, 55s},
                                    Published{"lto10", 65s, 62s}};
    constexpr int kTries = 20'000;
    for (const Published& published : kPublished) {
        const DriveModel& model = *find_drive_model(published.technology);
        core::Random random(1);
        Duration locate{0};
        Duration rewind{0};
        for (int i = 0; i < kTries; ++i) {
            const PhysicalPosition there = random_position(model, random);
            locate += locate_time(model, beginning_of(model), there);
            rewind += rewind_time(model, there);
        }
        CAPTURE(published.technology, in_seconds(locate / kTries), in_seconds(rewind / kTries));
        REQUIRE(is_near(locate / kTries, published.locate, 10s));
        REQUIRE(is_near(rewind / kTries, published.rewind, 1s));
    }
}

TEST_CASE("devices drive model: data flow at the drive's rate", "[devices]") {
    REQUIRE(transfer_time(lto9(), 400'000'000) == 1s);
    REQUIRE(transfer_time(lto9(), lto9().capacity_bytes) == 45'000s);
    REQUIRE(transfer_time(lto9(), 1) == 2ns);
}

TEST_CASE("devices drive model: the early warning leaves room to end a file", "[devices]") {
    REQUIRE(early_warning_bytes(18'000'000'000'000) == 1UL << 30);
    REQUIRE(early_warning_bytes(6'400'000'000) == 100'000'000);
    REQUIRE(early_warning_bytes(4UL << 20) == 1UL << 20);
    REQUIRE(early_warning_bytes(1UL << 20) == 1UL << 18);
}

TEST_CASE("devices write stream: a fast host is slowed down to the drive's rate", "[devices]") {
    WriteStream stream(lto9());
    constexpr std::uint64_t kBlock = 256UL << 10;
    constexpr int kCount = 40'000;  // 10.5 GB

    const Instant written = write_many(stream, Instant{}, kCount, kBlock, Duration{0});
    const Instant flushed = stream.flush(written);

    REQUIRE(is_near(flushed - Instant{}, transfer_time(lto9(), kCount * kBlock), 1ms));
    REQUIRE(is_near(flushed - written, transfer_time(lto9(), lto9().buffer_bytes), 10ms));
    REQUIRE(stream.backhitches() == 0);
}

TEST_CASE("devices write stream: the tape keeps moving for a host above the floor", "[devices]") {
    WriteStream stream(lto9());
    constexpr std::uint64_t kBlock = 256UL << 10;

    write_many(stream, Instant{}, 40'000, kBlock, 1'400us);  // 187 MB/s

    REQUIRE(stream.backhitches() == 0);
}

TEST_CASE("devices write stream: the tape stops again and again for a host below the floor",
          "[devices]") {
    WriteStream stream(lto9());
    constexpr std::uint64_t kBlock = 256UL << 10;

    write_many(stream, Instant{}, 40'000, kBlock, 2'600us);  // 101 MB/s

    // A quarter of the buffer is full after 2.7 s; another 303 MB arrive while the tape
    // repositions; then the buffer lasts 7.1 s, as it loses 76 MB/s. There are 104 s for these
    // rounds of 12.8 s.
    REQUIRE(stream.backhitches() == 8);
}

TEST_CASE("devices write stream: each flush costs a repositioning of 3 s", "[devices]") {
    WriteStream stream(lto9());
    Instant now{};
    constexpr std::uint64_t kFile = 100'000'000;
    for (int file = 0; file < 10; ++file) {
        now = stream.write(now, kFile);
        now = stream.flush(now);
    }

    REQUIRE(stream.backhitches() == 9);
    REQUIRE(now - Instant{} == 9 * kBackhitch + transfer_time(lto9(), 10 * kFile));
    REQUIRE(stream.flush(now) == now);
}

TEST_CASE("devices write stream: a tape that was moved starts without repositioning", "[devices]") {
    WriteStream stream(lto9());
    stream.write(Instant{}, 1'000'000);
    const Instant flushed = stream.flush(Instant{});
    stream.tape_moved();

    stream.write(flushed, 400'000'000);

    REQUIRE(stream.flush(flushed) == flushed + 1s);
    REQUIRE(stream.backhitches() == 0);
}

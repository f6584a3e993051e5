// Goal: what is left on a simulated disk after its machine is gone.
#include "devices/disk_image.h"

#include <set>

#include "tests/catch.h"
#include "tests/devices/blocks.h"

using namespace fopd;
using namespace fopd::devices;
using fopd::devices::testing::Blocks;

namespace {

constexpr std::uint8_t kPoisonByte = 0xdb;

DiskImage::WriteId begin_write(DiskImage& image, std::uint64_t block, const Blocks& from) {
    return image.begin_write(block * kBlockBytes, from.span());
}

void write(DiskImage& image, std::uint64_t block, const Blocks& from) {
    const auto id = begin_write(image, block, from);
    image.end_write(id, block * kBlockBytes, from.size_bytes());
}

Blocks read(const DiskImage& image, std::uint64_t block, std::size_t count = 1) {
    Blocks into(count, 0xee);
    REQUIRE(image.read(block * kBlockBytes, into.span()).has_value());
    return into;
}

}  // namespace

TEST_CASE("devices disk image: reads what was written, and zeros elsewhere", "[devices]") {
    DiskImage image(8 * kBlockBytes);

    write(image, 3, Blocks(2, 0x11));

    REQUIRE(read(image, 3, 2).all(0x11));
    REQUIRE(read(image, 0, 3).all(0));
    REQUIRE(read(image, 5, 3).all(0));
}

TEST_CASE("devices disk image: what was flushed survives every crash", "[devices]") {
    DiskImage image(8 * kBlockBytes);
    write(image, 0, Blocks(4, 0x11));
    image.flush(image.flush_point());

    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        core::Random random(seed);
        image.crash(random);
        REQUIRE(read(image, 0, 4).all(0x11));
    }
}

TEST_CASE("devices disk image: what was not flushed is kept or lost sector by sector",
          "[devices]") {
    std::set<std::size_t> kept_counts;
    bool torn = false;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        DiskImage image(8 * kBlockBytes);
        write(image, 0, Blocks(4, 0x11));
        image.flush(image.flush_point());
        write(image, 0, Blocks(4, 0x22));
        core::Random random(seed);

        image.crash(random);

        const auto left = read(image, 0, 4);
        REQUIRE(left.count(0x11) + left.count(0x22) == left.size_bytes());
        REQUIRE(left.count(0x22) % DiskImage::kSectorBytes == 0);
        torn = torn || left.count(0x22) % kBlockBytes != 0;
        kept_counts.insert(left.count(0x22));
    }
    REQUIRE(torn);
    REQUIRE(kept_counts.contains(0));
    REQUIRE(kept_counts.contains(4 * kBlockBytes));
}

TEST_CASE("devices disk image: a later write may be kept where an earlier one is lost",
          "[devices]") {
    bool seen = false;
    for (std::uint64_t seed = 0; seed < 200 && !seen; ++seed) {
        DiskImage image(8 * kBlockBytes);
        write(image, 0, Blocks(1, 0x11));
        write(image, 1, Blocks(1, 0x22));
        core::Random random(seed);
        image.crash(random);
        seen = read(image, 0).all(0) && read(image, 1).all(0x22);
    }
    REQUIRE(seen);
}

TEST_CASE("devices disk image: a crash may leave any write of those to one block", "[devices]") {
    std::set<std::uint8_t> seen;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        DiskImage image(8 * kBlockBytes);
        write(image, 0, Blocks(1, 0x11));
        write(image, 0, Blocks(1, 0x22));
        core::Random random(seed);
        image.crash(random);
        seen.insert(std::to_integer<std::uint8_t>(read(image, 0).span().front()));
    }
    REQUIRE(seen == std::set<std::uint8_t>{0, 0x11, 0x22});
}

TEST_CASE("devices disk image: a flush does not cover what ended after it began", "[devices]") {
    bool lost = false;
    for (std::uint64_t seed = 0; seed < 50 && !lost; ++seed) {
        DiskImage image(8 * kBlockBytes);
        const Blocks bytes(1, 0x11);
        const auto id = begin_write(image, 0, bytes);
        const auto point = image.flush_point();
        image.end_write(id, 0, kBlockBytes);
        image.flush(point);
        REQUIRE(image.unflushed_bytes() == kBlockBytes);
        core::Random random(seed);
        image.crash(random);
        lost = read(image, 0).all(0);
    }
    REQUIRE(lost);
}

TEST_CASE("devices disk image: a flush of the next process covers what the last one left under way",
          "[devices]") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        DiskImage image(8 * kBlockBytes);
        begin_write(image, 0, Blocks(1, 0x11));
        image.end_writes();
        image.flush(image.flush_point());
        REQUIRE(image.unflushed_bytes() == 0);
        core::Random random(seed);
        image.crash(random);
        REQUIRE(read(image, 0).all(0x11));
    }
}

TEST_CASE("devices disk image: a flush leaves a younger write to the same block in the cache",
          "[devices]") {
    DiskImage image(8 * kBlockBytes);
    write(image, 0, Blocks(1, 0x11));
    const auto point = image.flush_point();
    write(image, 0, Blocks(1, 0x22));
    image.flush(point);
    REQUIRE(read(image, 0).all(0x22));

    core::Random random(1);
    image.crash(random);

    const auto left = read(image, 0);
    REQUIRE(left.count(0x11) + left.count(0x22) == left.size_bytes());
}

TEST_CASE("devices disk image: after a failed flush another one covers nothing of it",
          "[devices]") {
    bool lost = false;
    for (std::uint64_t seed = 0; seed < 50 && !lost; ++seed) {
        DiskImage image(8 * kBlockBytes);
        write(image, 0, Blocks(4, 0x11));
        core::Random random(seed);
        image.fail_flush(image.flush_point(), random);
        REQUIRE(image.unflushed_bytes() == 0);
        image.flush(image.flush_point());
        image.crash(random);
        lost = !read(image, 0, 4).all(0x11);
    }
    REQUIRE(lost);
}

TEST_CASE("devices disk image: discarded blocks are poisoned, also when a crash tears them",
          "[devices]") {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        DiskImage image(8 * kBlockBytes);
        write(image, 0, Blocks(4, 0x11));
        image.flush(image.flush_point());
        const auto id = image.begin_discard(kBlockBytes, 2 * kBlockBytes);
        image.end_write(id, kBlockBytes, 2 * kBlockBytes);
        REQUIRE(read(image, 1, 2).all(kPoisonByte));
        REQUIRE(read(image, 0).all(0x11));
        REQUIRE(read(image, 3).all(0x11));

        image.flush(image.flush_point());
        write(image, 1, Blocks(1, 0x33));
        core::Random random(seed);
        image.crash(random);

        const auto left = read(image, 1);
        REQUIRE(left.count(kPoisonByte) + left.count(0x33) == left.size_bytes());
    }
}

TEST_CASE("devices disk image: unneeded blocks are poisoned, whatever a crash keeps", "[devices]") {
    DiskImage image(8 * kBlockBytes);
    write(image, 0, Blocks(2, 0x11));
    image.flush(image.flush_point());
    write(image, 2, Blocks(2, 0x22));

    image.poison_if([](std::uint64_t block) { return block % 2 == 0; });
    core::Random random(1);
    REQUIRE(read(image, 3).all(0x22));
    image.crash(random);

    REQUIRE(read(image, 0).all(kPoisonByte));
    REQUIRE(read(image, 1).all(0x11));
    REQUIRE(read(image, 2).all(kPoisonByte));
    REQUIRE(read(image, 4).all(0));
}

TEST_CASE("devices disk image: a copy is the disk as it was", "[devices]") {
    DiskImage image(8 * kBlockBytes);
    write(image, 0, Blocks(1, 0x11));
    const DiskImage older = image;

    write(image, 0, Blocks(1, 0x22));

    REQUIRE(read(older, 0).all(0x11));
    REQUIRE(read(image, 0).all(0x22));
}

TEST_CASE("devices disk image: a flipped bit is read back", "[devices]") {
    DiskImage image(8 * kBlockBytes);
    write(image, 0, Blocks(1, 0x11));

    image.flip_bit(17, 1);

    const auto bytes = read(image, 0);
    REQUIRE(bytes.span()[17] == std::byte{0x13});
    REQUIRE(bytes.count(0x11) == kBlockBytes - 1);
}

TEST_CASE("devices disk image: an unreadable block is an error until it is written", "[devices]") {
    DiskImage image(8 * kBlockBytes);
    image.make_unreadable(2);
    const Blocks into(3);

    const auto over_it = image.read(kBlockBytes, into.span());
    const auto before_it = image.read(0, into.span().first(2 * kBlockBytes));
    write(image, 2, Blocks(1, 0x11));
    const auto written = image.read(kBlockBytes, into.span());

    REQUIRE(over_it.error().code == Errc::kIo);
    REQUIRE(before_it.has_value());
    REQUIRE(written.has_value());
}

TEST_CASE("devices disk image: what was cut off is gone when it grows again", "[devices]") {
    DiskImage image(8 * kBlockBytes);
    write(image, 3, Blocks(2, 0x11));

    image.resize(4 * kBlockBytes);
    image.resize(8 * kBlockBytes);

    REQUIRE(read(image, 3).all(0x11));
    REQUIRE(read(image, 4).all(0));
}

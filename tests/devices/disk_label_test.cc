// Goal: a disk is recognised for what it is, and written only when that is ours or nothing.
#include "devices/disk_label.h"

#include <cstring>
#include <memory>

#include "core/virtual_world.h"
#include "devices/memory_disk.h"
#include "tests/catch.h"
#include "tests/devices/blocks.h"
#include "tests/devices/label_samples.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::devices;
using fopd::devices::testing::Blocks;
using fopd::devices::testing::counting_id;

namespace {

constexpr std::uint64_t kDiskBytes = 4UL << 20;
const NodeId kNode = counting_id(0xa0);

NewLabel new_label() {
    return {.disk = counting_id(0x10), .created_unix_ns = 5, .segment_bytes = 1U << 20, .slot = 3};
}

// A node that looks at one disk; the image stays when it goes.
class Stage : fopd::testing::Replay {
public:
    explicit Stage(DiskImage& image, Claim claim = {.node = kNode, .pool = "fast"},
                   std::uint64_t seed = 1)
        : Replay(seed),
          world(seed),
          reactor(world.make_reactor()),
          disk(*reactor, image, {.seed = seed, .power = &power}),
          label(disk, std::move(claim)) {}

    Verdict inspect() { return world.run(*reactor, label.inspect()).value().value(); }
    Result<void> take(NewLabel fresh = new_label()) {
        return world.run(*reactor, label.take(fresh)).value();
    }
    Result<void> set_state(LabelState state) {
        return world.run(*reactor, label.set_state(state)).value();
    }

    VirtualWorld world;
    std::unique_ptr<Reactor> reactor;
    Power power;
    MemoryDisk disk;
    DiskLabel label;
};

DiskImage blank_disk() {
    return DiskImage(kDiskBytes);
}

DiskImage our_disk() {
    DiskImage image = blank_disk();
    Stage stage(image);
    REQUIRE(stage.inspect() == Verdict::kBlank);
    REQUIRE(stage.take().has_value());
    image.settle();
    return image;
}

void put_bytes(DiskImage& image, std::uint64_t offset, std::string_view bytes) {
    const std::uint64_t block = offset / kBlockBytes * kBlockBytes;
    const Blocks content(2);
    REQUIRE(image.read(block, content.span()).has_value());
    std::memcpy(content.span().data() + offset % kBlockBytes, bytes.data(), bytes.size());
    image.end_write(image.begin_write(block, content.span()), block, content.size_bytes());
    image.settle();
}

// That `image` is refused with this verdict, text and error, and that nobody writes to it.
void require_refused(DiskImage& image, Verdict verdict, const std::string& text, Errc code,
                     Claim claim = {.node = kNode, .pool = "fast"}) {
    Stage stage(image, std::move(claim));
    REQUIRE(stage.inspect() == verdict);
    REQUIRE_THAT(stage.label.explain(), ContainsSubstring(text));
    REQUIRE(stage.label.refusal().code == code);
    REQUIRE(stage.take().error().code == code);
    REQUIRE(stage.set_state(LabelState::kRetired).error().code == code);
    REQUIRE(stage.disk.counts().writes == 0);
}

}  // namespace

TEST_CASE("devices disk label: a blank disk may be taken, and is ours from then on", "[devices]") {
    DiskImage image = blank_disk();
    {
        Stage stage(image);
        REQUIRE(stage.inspect() == Verdict::kBlank);
        REQUIRE(stage.label.refusal().code == Errc::kNotFound);
        REQUIRE(stage.set_state(LabelState::kRetired).error().code == Errc::kNotFound);
        REQUIRE(stage.take().has_value());
        REQUIRE(stage.label.verdict() == Verdict::kOurs);
    }
    Random random(1);
    image.crash(random);

    Stage stage(image);
    REQUIRE(stage.inspect() == Verdict::kOurs);
    REQUIRE(stage.label.label().disk == counting_id(0x10));
    REQUIRE(stage.label.label().slot == 3);
    REQUIRE(stage.label.label().size_bytes == kDiskBytes);
    REQUIRE_FALSE(stage.label.copy_lost());
    REQUIRE(stage.take().error().code == Errc::kDenied);
}

TEST_CASE("devices disk label: what belongs to others is refused, and never written", "[devices]") {
    DiskImage image = our_disk();
    require_refused(image, Verdict::kOtherNode, "belongs to node a0a1a2", Errc::kDenied,
                    {.node = counting_id(0xb0), .pool = "fast"});
    require_refused(image, Verdict::kOtherPool, "belongs to pool \"fast\"", Errc::kDenied,
                    {.node = kNode, .pool = "cold"});
}

TEST_CASE("devices disk label: a disk that lost its end is refused, one that grew is not",
          "[devices]") {
    DiskImage image = our_disk();
    image.resize(kDiskBytes + (1UL << 20));
    REQUIRE(Stage(image).inspect() == Verdict::kOurs);
    image.resize(kDiskBytes - kBlockBytes);
    require_refused(image, Verdict::kTruncated, "had 4194304 when it was taken", Errc::kCorrupt);
}

TEST_CASE("devices disk label: foreign content is refused wherever it begins", "[devices]") {
    struct Row {
        std::uint64_t offset;
        std::string_view bytes;
        std::string text;
    };
    using namespace std::string_view_literals;
    const Row row = GENERATE(values<Row>({
        {1080, "\x53\xef"sv, "ext4"},
        {0, "XFSB"sv, "XFS"},
        {65600, "_BHRfS_M"sv, "btrfs"},
        {510, "\x55\xaa"sv, "partition table"},
        {4096, "\xfc\x4e\x2b\xa9"sv, "array"},
        {700'000, "x"sv, "something else"},
        {kDiskBytes - 2 * kBlockBytes, "x"sv, "something else"},
        {kDiskBytes - 900'000, "x"sv, "something else"},
    }));
    DiskImage image = blank_disk();
    put_bytes(image, row.offset, row.bytes);
    require_refused(image, Verdict::kForeign, row.text, Errc::kDenied);
}

TEST_CASE("devices disk label: one damaged copy is no harm, and is mended by the next label",
          "[devices]") {
    const std::uint64_t copy = GENERATE(0U, 1U);
    const bool unreadable = GENERATE(false, true);
    DiskImage image = our_disk();
    if (unreadable) {
        image.make_unreadable(copy);
    } else {
        image.flip_bit(copy * kBlockBytes + 20, 3);
    }
    Stage stage(image);

    REQUIRE(stage.inspect() == Verdict::kOurs);
    REQUIRE(stage.label.copy_lost());
    REQUIRE(stage.label.label().slot == 3);
    REQUIRE(stage.set_state(LabelState::kActive).has_value());
    REQUIRE(stage.set_state(LabelState::kActive).has_value());

    Stage later(image);
    REQUIRE(later.inspect() == Verdict::kOurs);
    REQUIRE_FALSE(later.label.copy_lost());
}

TEST_CASE("devices disk label: two damaged copies are a damaged disk, not a blank one",
          "[devices]") {
    DiskImage image = our_disk();
    image.flip_bit(20, 3);
    image.flip_bit(kBlockBytes + 20, 3);
    require_refused(image, Verdict::kDamaged, "copies are both damaged", Errc::kCorrupt);
}

TEST_CASE("devices disk label: a disk that cannot be read is an error", "[devices]") {
    DiskImage image = our_disk();
    image.make_unreadable(0);
    image.make_unreadable(1);
    Stage stage(image);
    const auto inspected = stage.world.run(*stage.reactor, stage.label.inspect()).value();
    REQUIRE(inspected.error().code == Errc::kIo);
}

TEST_CASE("devices disk label: a retired disk may be taken again", "[devices]") {
    DiskImage image = our_disk();
    {
        Stage stage(image);
        REQUIRE(stage.inspect() == Verdict::kOurs);
        REQUIRE(stage.set_state(LabelState::kRetired).has_value());
        REQUIRE(stage.label.verdict() == Verdict::kRetired);
    }
    Stage stage(image);
    REQUIRE(stage.inspect() == Verdict::kRetired);
    REQUIRE(stage.take().has_value());
    REQUIRE(Stage(image).inspect() == Verdict::kOurs);
}

TEST_CASE("devices disk label: a crash while a disk is taken leaves it blank or ours",
          "[devices]") {
    bool blank = false;
    bool ours = false;
    for (std::uint64_t step = 1; step <= 8; ++step) {  // Two writes and two flushes.
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            DiskImage image = blank_disk();
            bool acknowledged = false;
            {
                Stage stage(image, {.node = kNode, .pool = "fast"}, seed);
                REQUIRE(stage.inspect() == Verdict::kBlank);
                stage.power.cut_at(step);
                acknowledged =
                    stage.world.run(*stage.reactor, stage.label.take(new_label())).has_value();
                stage.reactor->drop_coroutines();
            }
            Random random(seed);
            image.crash(random);

            const Verdict verdict = Stage(image).inspect();
            REQUIRE_FALSE(acknowledged);
            REQUIRE((verdict == Verdict::kBlank || verdict == Verdict::kOurs));
            if (step > 4) REQUIRE(verdict == Verdict::kOurs);
            blank = blank || verdict == Verdict::kBlank;
            ours = ours || verdict == Verdict::kOurs;
        }
    }
    REQUIRE(blank);
    REQUIRE(ours);
}

TEST_CASE("devices disk label: a crash while it changes leaves the old or the new one",
          "[devices]") {
    const DiskImage before = our_disk();
    for (std::uint64_t step = 1; step <= 4; ++step) {
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            DiskImage image = before;
            {
                Stage stage(image, {.node = kNode, .pool = "fast"}, seed);
                REQUIRE(stage.inspect() == Verdict::kOurs);
                stage.power.cut_at(step);
                const auto ended =
                    stage.world.run(*stage.reactor, stage.label.set_state(LabelState::kRetired));
                REQUIRE_FALSE(ended.has_value());
                stage.reactor->drop_coroutines();
            }
            Random random(seed);
            image.crash(random);

            const Verdict verdict = Stage(image).inspect();
            REQUIRE((verdict == Verdict::kOurs || verdict == Verdict::kRetired));
        }
    }
}

TEST_CASE("devices disk label: what could not be written was not", "[devices]") {
    DiskImage image = our_disk();
    Stage stage(image);
    REQUIRE(stage.inspect() == Verdict::kOurs);
    stage.disk.faults().flush_error_ppm = 1'000'000;

    REQUIRE(stage.set_state(LabelState::kRetired).error().code == Errc::kIo);
    REQUIRE(stage.label.verdict() == Verdict::kOurs);
    REQUIRE(stage.label.label().state == LabelState::kActive);
}

TEST_CASE("devices disk label: a disk that is not ready yet may be taken anew", "[devices]") {
    DiskImage image = blank_disk();
    NewLabel unready = new_label();
    unready.state = LabelState::kRetired;
    {
        Stage stage(image);
        stage.inspect();
        REQUIRE(stage.take(unready).has_value());
        REQUIRE(stage.label.verdict() == Verdict::kRetired);
    }
    Random random(1);
    image.crash(random);

    Stage stage(image);
    REQUIRE(stage.inspect() == Verdict::kRetired);
    REQUIRE(stage.take(unready).has_value());
    REQUIRE(stage.take().has_value());
    REQUIRE(stage.label.verdict() == Verdict::kOurs);
    REQUIRE(stage.label.label().generation == 6);
    REQUIRE(Stage(image).inspect() == Verdict::kOurs);
}

TEST_CASE("devices disk label: a released disk is its node's, and anybody may take it",
          "[devices]") {
    DiskImage image = our_disk();
    {
        Stage stage(image);
        REQUIRE(stage.inspect() == Verdict::kOurs);
        REQUIRE(stage.set_state(LabelState::kReleased).has_value());
        REQUIRE(stage.label.verdict() == Verdict::kOurs);
        REQUIRE(stage.label.label().slot == 3);
    }
    {
        Stage stage(image);
        REQUIRE(stage.inspect() == Verdict::kOurs);
        REQUIRE(stage.label.label().state == LabelState::kReleased);
    }
    DiskImage copy = image;
    {
        Stage stage(copy, {.node = kNode, .pool = "slow"});
        REQUIRE(stage.inspect() == Verdict::kRetired);
    }
    const NodeId other = counting_id(0xb0);
    Stage stage(image, {.node = other, .pool = "slow"});
    REQUIRE(stage.inspect() == Verdict::kRetired);
    NewLabel fresh = new_label();
    fresh.disk = counting_id(0x20);
    REQUIRE(stage.take(fresh).has_value());
    image.settle();
    Stage owner(image);
    REQUIRE(owner.inspect() == Verdict::kOtherNode);
}

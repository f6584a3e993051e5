// Goal: every disk keeps the contract of devices/device.h, whatever turns its reactor.
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tests/devices/device_kinds.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::devices;
using namespace fopd::devices::testing;

namespace {

struct Row {
    DiskKind disk;
    Kind reactor;
};
constexpr std::array kRows{
    Row{.disk = DiskKind::kDirectFile, .reactor = Kind::kUring},
    Row{.disk = DiskKind::kDirectFile, .reactor = Kind::kPoll},
    Row{.disk = DiskKind::kDirectFile, .reactor = Kind::kVirtual},
    Row{.disk = DiskKind::kCachedFile, .reactor = Kind::kUring},
    Row{.disk = DiskKind::kMemoryFile, .reactor = Kind::kUring},
    Row{.disk = DiskKind::kMemoryFile, .reactor = Kind::kVirtual},
    Row{.disk = DiskKind::kBlockDevice, .reactor = Kind::kUring},
    Row{.disk = DiskKind::kSimulated, .reactor = Kind::kVirtual},
};

// Calls `fact` with a disk of each row that this machine has.
template <typename Fact>
void for_each_disk(Fact fact) {
    const Row row = GENERATE(from_range(kRows.begin(), kRows.end()));
    CAPTURE(row.disk, row.reactor);
    DiskStage stage(row.disk, row.reactor);
    if (!stage.is_there()) {
        SUCCEED("this machine has no such disk");
        return;
    }
    fact(stage);
}

Task<void> write_and_count(Device* disk, const Blocks* from, std::uint64_t offset,
                           std::size_t* done) {
    const auto written = co_await disk->write(from->buffer(), offset);
    if (written) ++*done;
}

Task<void> close_gate(Gate* gate, Reactor* reactor) {
    co_await gate->close(*reactor);
}

}  // namespace

TEST_CASE("devices device: reads back what was written, and nothing beside it changes",
          "[devices]") {
    for_each_disk([](DiskStage& stage) {
        REQUIRE(stage.disk().geometry().size_bytes == DiskStage::kBytes);
        REQUIRE(stage.write(Blocks(3, 0x11), 4 * kBlockBytes).has_value());
        REQUIRE(stage.write(Blocks(1, 0x22), DiskStage::kBytes - kBlockBytes).has_value());

        const Blocks around(5);
        REQUIRE(stage.read(around, 3 * kBlockBytes).has_value());
        const Blocks end(2);
        REQUIRE(stage.read(end, DiskStage::kBytes - 2 * kBlockBytes).has_value());

        REQUIRE(around.count(0x11) == 3 * kBlockBytes);
        REQUIRE(around.span().front() == std::byte{0});
        REQUIRE(around.span()[kBlockBytes] == std::byte{0x11});
        REQUIRE(around.span().back() == std::byte{0});
        REQUIRE(end.count(0x22) == kBlockBytes);
        REQUIRE(end.span().back() == std::byte{0x22});
    });
}

TEST_CASE("devices device: what it cannot do is invalid, and changes nothing", "[devices]") {
    for_each_disk([](DiskStage& stage) {
        const Blocks blocks(2, 0x11);
        const auto try_both = [&](Buffer buffer, std::uint64_t offset) {
            auto& harness = stage.machine.harness;
            const auto written = harness.run(stage.disk().write(buffer, offset));
            const auto read = harness.run(stage.disk().read(buffer, offset, {}));
            REQUIRE(written.error().code == Errc::kInvalid);
            REQUIRE(read.error().code == Errc::kInvalid);
        };
        constexpr std::uint64_t kEnd = DiskStage::kBytes;
        const Buffer whole = blocks.buffer();
        const Buffer part{.data = whole.data, .size_bytes = kBlockBytes - 512};
        const Buffer crooked{.data = whole.data + 512, .size_bytes = kBlockBytes};

        try_both(whole, 512);
        try_both(part, 0);
        try_both(crooked, 0);
        try_both(whole, kEnd);
        try_both(whole, kEnd - kBlockBytes);
        try_both(whole, std::numeric_limits<std::uint64_t>::max() - kBlockBytes + 1);
        const auto discarded = stage.discard(kEnd - kBlockBytes, 2 * kBlockBytes);

        REQUIRE(discarded.error().code == Errc::kInvalid);
        const Blocks beginning(2);
        REQUIRE(stage.read(beginning, 0).has_value());
        REQUIRE(beginning.all(0));
    });
}

TEST_CASE("devices device: parts are written one behind the other", "[devices]") {
    for_each_disk([](DiskStage& stage) {
        const Blocks one(1, 0x11);
        const Blocks three(3, 0x22);
        const Blocks last(1, 0x33);
        const std::array parts{one.buffer(), three.buffer(), last.buffer()};
        auto& harness = stage.machine.harness;
        REQUIRE(harness.run(stage.disk().gather(parts, 2 * kBlockBytes)).has_value());

        const Blocks around(7);
        REQUIRE(stage.read(around, kBlockBytes).has_value());
        std::vector<std::uint8_t> found;
        for (std::size_t block = 0; block < 7; ++block) {
            found.push_back(std::to_integer<std::uint8_t>(around.span()[block * kBlockBytes]));
        }
        REQUIRE(found == std::vector<std::uint8_t>{0, 0x11, 0x22, 0x22, 0x22, 0x33, 0});
        REQUIRE(around.count(0x22) == 3 * kBlockBytes);
    });
}

TEST_CASE("devices device: parts it cannot write are invalid, and change nothing", "[devices]") {
    for_each_disk([](DiskStage& stage) {
        const Blocks blocks(2, 0x11);
        const Buffer whole = blocks.buffer();
        const Buffer part{.data = whole.data, .size_bytes = kBlockBytes - 512};
        const Buffer crooked{.data = whole.data + 512, .size_bytes = kBlockBytes};
        const auto gather = [&](Buffer second, std::uint64_t offset) {
            const std::array parts{whole, second};
            return stage.machine.harness.run(stage.disk().gather(parts, offset)).error().code;
        };
        REQUIRE(gather(part, 0) == Errc::kInvalid);
        REQUIRE(gather(crooked, 0) == Errc::kInvalid);
        REQUIRE(gather(whole, 512) == Errc::kInvalid);
        REQUIRE(gather(whole, DiskStage::kBytes - 2 * kBlockBytes) == Errc::kInvalid);
        const Blocks beginning(2);
        REQUIRE(stage.read(beginning, 0).has_value());
        REQUIRE(beginning.all(0));
    });
}

TEST_CASE("devices device: nothing is a length, too", "[devices]") {
    for_each_disk([](DiskStage& stage) {
        const Blocks nothing(0);
        REQUIRE(stage.write(nothing, DiskStage::kBytes).has_value());
        REQUIRE(stage.read(nothing, 0).has_value());
        REQUIRE(stage.discard(0, 0).has_value());
        REQUIRE(stage.flush().has_value());
    });
}

TEST_CASE("devices device: operations run beside each other", "[devices]") {
    for_each_disk([](DiskStage& stage) {
        constexpr std::size_t kCount = 64;
        std::vector<Blocks> blocks;
        for (std::size_t i = 0; i < kCount; ++i) {
            blocks.emplace_back(2, static_cast<std::uint8_t>(i + 1));
        }
        Gate gate;
        std::size_t done = 0;
        Reactor& reactor = stage.machine.harness.reactor();
        for (std::size_t i = 0; i < kCount; ++i) {
            reactor.spawn(gate,
                          write_and_count(&stage.disk(), &blocks[i], i * 2 * kBlockBytes, &done));
        }
        stage.machine.harness.run(close_gate(&gate, &reactor));
        REQUIRE(done == kCount);
        REQUIRE(stage.flush().has_value());

        for (std::size_t i = 0; i < kCount; ++i) {
            const Blocks into(2);
            REQUIRE(stage.read(into, i * 2 * kBlockBytes).has_value());
            REQUIRE(into.all(static_cast<std::uint8_t>(i + 1)));
        }
    });
}

TEST_CASE("devices device: the whole of it in one operation", "[devices]") {
    for_each_disk([](DiskStage& stage) {
        constexpr std::size_t kBlocks = DiskStage::kBytes / kBlockBytes;
        REQUIRE(stage.write(Blocks(kBlocks, 0x33), 0).has_value());
        const Blocks into(kBlocks);
        REQUIRE(stage.read(into, 0).has_value());
        REQUIRE(into.all(0x33));
    });
}

TEST_CASE("devices device: a discard touches nothing beside it, and can be written over",
          "[devices]") {
    for_each_disk([](DiskStage& stage) {
        REQUIRE(stage.write(Blocks(8, 0x11), 0).has_value());
        REQUIRE(stage.flush().has_value());

        REQUIRE(stage.discard(2 * kBlockBytes, 4 * kBlockBytes).has_value());
        const Blocks into(8);
        REQUIRE(stage.read(into, 0).has_value());
        const auto kept = [](std::span<const std::byte> bytes) {
            return std::ranges::count(bytes, std::byte{0x11}) ==
                   static_cast<std::ptrdiff_t>(bytes.size());
        };
        REQUIRE(kept(into.span().first(2 * kBlockBytes)));
        REQUIRE(kept(into.span().last(2 * kBlockBytes)));

        REQUIRE(stage.write(Blocks(4, 0x22), 2 * kBlockBytes).has_value());
        REQUIRE(stage.read(into, 0).has_value());
        REQUIRE(into.count(0x22) == 4 * kBlockBytes);
    });
}

TEST_CASE("devices device: what was written is no hole", "[devices]") {
    for_each_disk([](DiskStage& stage) {
        REQUIRE(stage.write(Blocks(2, 0x11), 3 * kBlockBytes).has_value());
        REQUIRE(stage.write(Blocks(1, 0), 9 * kBlockBytes).has_value());

        const auto whole = stage.find_hole(0, DiskStage::kBytes);
        const auto written = stage.find_hole(3 * kBlockBytes, 2 * kBlockBytes);
        const auto behind = stage.find_hole(3 * kBlockBytes, 8 * kBlockBytes);
        const auto part = stage.find_hole(6 * kBlockBytes, 2 * kBlockBytes);
        const auto last = stage.find_hole(DiskStage::kBytes - kBlockBytes, kBlockBytes);

        REQUIRE(written == Stretch{});
        if (whole->size_bytes == 0) return;  // It knows of none.
        REQUIRE(whole == Stretch{.offset = 0, .size_bytes = 3 * kBlockBytes});
        REQUIRE(behind == Stretch{.offset = 5 * kBlockBytes, .size_bytes = 4 * kBlockBytes});
        REQUIRE(part == Stretch{.offset = 6 * kBlockBytes, .size_bytes = 2 * kBlockBytes});
        REQUIRE(last ==
                Stretch{.offset = DiskStage::kBytes - kBlockBytes, .size_bytes = kBlockBytes});

        REQUIRE(stage.discard(3 * kBlockBytes, kBlockBytes).has_value());
        REQUIRE(stage.find_hole(3 * kBlockBytes, 2 * kBlockBytes) ==
                Stretch{.offset = 3 * kBlockBytes, .size_bytes = kBlockBytes});
    });
}

TEST_CASE("devices device: a read that was given up is cancelled", "[devices]") {
    for_each_disk([](DiskStage& stage) {
        CancelSource cancel;
        cancel.cancel();
        const Blocks into(1);
        const auto read = stage.read(into, 0, {.cancel = &cancel});
        REQUIRE(read.error().code == Errc::kCancelled);
    });
}

TEST_CASE("devices device: any sequence of operations leaves what the last writes left",
          "[devices]") {
    for_each_disk([](DiskStage& stage) {
        constexpr std::size_t kBlocks = 64;
        std::vector<int> model(kBlocks, 0);  // -1: anything.
        Random random(4711);
        for (int i = 1; i <= 150; ++i) {
            const std::uint64_t first = random.below(kBlocks);
            const std::uint64_t count =
                1 + random.below(std::min<std::uint64_t>(8, kBlocks - first));
            const std::uint64_t what = random.below(10);
            const Blocks blocks(count, static_cast<std::uint8_t>(i));
            const auto begin = model.begin() + static_cast<std::ptrdiff_t>(first);
            if (what < 5) {
                REQUIRE(stage.write(blocks, first * kBlockBytes).has_value());
                std::fill_n(begin, count, i);
            } else if (what == 5) {
                REQUIRE(stage.discard(first * kBlockBytes, count * kBlockBytes).has_value());
                std::fill_n(begin, count, -1);
            } else if (what == 6) {
                REQUIRE(stage.flush().has_value());
            } else {
                REQUIRE(stage.read(blocks, first * kBlockBytes).has_value());
                for (std::size_t each = 0; each < count; ++each) {
                    const int expected = model[first + each];
                    const auto got = std::to_integer<int>(blocks.span()[each * kBlockBytes + 77]);
                    REQUIRE((expected == -1 || expected == got));
                }
            }
        }
    });
}

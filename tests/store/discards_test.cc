// Goal: who asked for discards is told once that a disk does not support them.

#include "store/discards.h"

#include <string>
#include <vector>

#include "core/virtual_world.h"
#include "devices/disk_image.h"
#include "devices/memory_disk.h"
#include "tests/catch.h"
#include "tests/store/forwarding_device.h"

namespace discards_test {

using namespace fopd;
using namespace fopd::store;

namespace {

constexpr std::uint64_t kSegmentBlocks = 64;

enum class Support { kNone, kOnlyByWord };

// A disk that has no discards, or says that it has them until the first one.
class DiskWithoutDiscards final : public testing::ForwardingDevice {
public:
    DiskWithoutDiscards(devices::Device& device, Support support)
        : ForwardingDevice(device), geometry_(device.geometry()) {
        geometry_.discards = support == Support::kOnlyByWord;
    }
    const devices::Geometry& geometry() const override { return geometry_; }
    Task<Result<void>> discard(std::uint64_t /*offset*/, std::uint64_t /*size_bytes*/) override {
        geometry_.discards = false;
        ++count_;
        co_return Result<void>{};
    }
    unsigned count() const { return count_; }

private:
    devices::Geometry geometry_;
    unsigned count_ = 0;
};

class NameSink final : public core::EventSink {
public:
    void emit(core::Level, std::string_view name, std::span<const core::Field>) override {
        names.emplace_back(name);
    }
    bool wants(core::Level) const override { return true; }
    std::vector<std::string> names;
};

struct Outcome {
    std::vector<std::string> events;
    unsigned discards = 0;
    bool ended = false;
};

Outcome run_discards(Discards::Options options, Support support) {
    core::VirtualWorld world(1);
    const auto reactor = world.make_reactor();
    devices::DiskImage image(16 * kSegmentBlocks * devices::kBlockBytes);
    devices::MemoryDisk memory(*reactor, image, {});
    DiskWithoutDiscards disk(memory, support);
    Allocator space({.disk_blocks = 16 * kSegmentBlocks,
                     .first_block = kSegmentBlocks,
                     .segment_blocks = kSegmentBlocks});
    NameSink events;
    core::WaitQueue released(*reactor);
    core::CancelSource stop;
    Discards discards({.reactor = *reactor, .device = disk, .events = events, .released = released},
                      options);

    const bool ended = world.run(*reactor, discards.run(&space, &stop));

    return {.events = events.names, .discards = disk.count(), .ended = ended};
}

}  // namespace

TEST_CASE("discards: a disk without them is reported once", "[store]") {
    const Outcome outcome = run_discards({.wanted = true}, Support::kNone);

    REQUIRE(outcome.ended);
    REQUIRE(outcome.discards == 0);
    REQUIRE(outcome.events == std::vector<std::string>{"store.no_discard"});
}

TEST_CASE("discards: a disk that refuses the first one is reported once", "[store]") {
    const Outcome outcome = run_discards({.wanted = true}, Support::kOnlyByWord);

    REQUIRE(outcome.ended);
    REQUIRE(outcome.discards == 1);
    REQUIRE(outcome.events == std::vector<std::string>{"store.no_discard"});
}

TEST_CASE("discards: nothing is reported where nobody wants them", "[store]") {
    const Outcome outcome = run_discards({.wanted = false}, Support::kNone);

    REQUIRE(outcome.ended);
    REQUIRE(outcome.events.empty());
}

}  // namespace discards_test

// Goal: what a volume promises of copies on cartridges, released objects and recalls, one promise
// each. Method: a volume on a simulated disk, which is opened again with its index and without.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/memory_disk.h"
#include "store/map_index.h"
#include "store/volume.h"
#include "store/volume_check.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/store/simulated_machine.h"

namespace fopd::store::testing::tape {
namespace {

constexpr Fid kObject{.high = 3ULL << 48, .low = 1};
constexpr Fid kOther{.high = 3ULL << 48, .low = 2};
constexpr VsnText kFirst{'A', 'A', '0', '0', '0', '1'};
constexpr VsnText kSecond{'A', 'A', '0', '0', '0', '2'};
constexpr std::uint64_t kBlocks = 8;
constexpr std::uint64_t kBytes = kBlocks * 4096;

enum class Start : std::uint8_t { kWithIndex, kWithoutIndex };

// A volume that can be opened again.
class TapeBench : fopd::testing::Replay {
public:
    TapeBench() : Replay(1), world(1) {
        start();
        REQUIRE(run(volume->format()).has_value());
        REQUIRE(run(volume->open(Volume::Mode::kServe)).has_value());
    }
    ~TapeBench() { machine->drop_coroutines(); }

    void start_again(Start how) {
        REQUIRE(run(volume->close()).has_value());
        start_closed(how);
    }
    // REQUIRES: it is closed.
    void start_closed(Start how) {
        if (how == Start::kWithoutIndex) {
            index_image.entries.clear();
            index_image.applied = 0;
        }
        start();
        REQUIRE(run(volume->open(Volume::Mode::kServe)).has_value());
    }

    template <typename T>
    T run(Task<T> task) {
        auto result = world.run(machine->reactor(), std::move(task));
        REQUIRE(result.has_value());
        return std::move(*result);
    }
    core::WaitOptions soon() { return {.deadline = after(machine->reactor().now(), 10s)}; }

    Object object(Fid fid) {
        const auto found = volume->map().find(fid);
        REQUIRE(found.has_value());
        REQUIRE(found->has_value());
        Object object = **found;
        object.owner = "alice";
        object.group = "users";
        object.name = {};
        volume->map().release();
        return object;
    }
    // Writes the blocks, and so makes the next content of the object.
    Task<Result<void>> write(Fid fid, BlockRange blocks) {
        auto room = co_await volume->reserve(kPutRecordBytesMax + extent_record_bytes(64), soon());
        if (!room) co_return std::unexpected(room.error());
        const auto found = volume->map().find(fid);
        if (!found) co_return std::unexpected(found.error());
        Object next{.mode = 0600, .owner = "alice", .group = "users"};
        if (found->has_value()) next = **found;
        next.next_content();
        next.size_bytes = std::max(next.size_bytes, blocks.end() * 4096);
        Change change;
        ValueBuffer value;
        change.records.put(Key::object(fid), write_object(value, next));
        const auto added = add_extent(change, fid, blocks);
        if (!added) co_return added;
        const auto done = co_await commit(&change, std::move(*room));
        if (!done) volume->give_back(last_allocated_);
        co_return done;
    }
    Result<void> add_extent(Change& change, Fid fid, BlockRange blocks) {
        const auto range = volume->allocate(static_cast<std::uint32_t>(blocks.count));
        if (!range) return std::unexpected(range.error());
        REQUIRE(range->count == blocks.count);
        last_allocated_ = *range;
        const std::vector<std::uint32_t> checksums(blocks.count);
        change.records.extent(
            fid, {.first = blocks.first, .block = range->block, .checksums = checksums});
        return {};
    }
    Task<Result<void>> put(Fid fid, Object next) {
        auto room = co_await volume->reserve(kPutRecordBytesMax, soon());
        if (!room) co_return std::unexpected(room.error());
        Change change;
        ValueBuffer value;
        change.records.put(Key::object(fid), write_object(value, next));
        co_return co_await commit(&change, std::move(*room));
    }
    Task<Result<void>> truncate(Fid fid, std::uint64_t blocks) {
        auto room = co_await volume->reserve(kPutRecordBytesMax + kPunchRecordBytes, soon(),
                                             Purpose::kCutting);
        if (!room) co_return std::unexpected(room.error());
        Change change;
        const BlockRange rest{.first = blocks, .count = kObjectBlocksMax - blocks};
        const auto punched = co_await volume->punch(&change, fid, rest, soon());
        if (!punched) co_return std::unexpected(punched.error());
        Object next = object(fid);
        next.next_content();
        next.size_bytes = blocks * 4096;
        next.is_released = false;
        next.released_blocks = 0;
        ValueBuffer value;
        change.records.put(Key::object(fid), write_object(value, next));
        co_return co_await commit(&change, std::move(*room));
    }
    Task<Result<void>> punch(Fid fid, BlockRange blocks) {
        auto room = co_await volume->reserve(kPunchRecordBytes, soon(), Purpose::kCutting);
        if (!room) co_return std::unexpected(room.error());
        Change change;
        change.records.punch(fid, blocks.first, blocks.count);
        co_return co_await commit(&change, std::move(*room));
    }
    Task<Result<void>> remove(Fid fid) {
        auto room = co_await volume->reserve(kRemoveRecordBytes, soon(), Purpose::kFreeing);
        if (!room) co_return std::unexpected(room.error());
        Change change;
        change.records.remove(fid);
        co_return co_await commit(&change, std::move(*room));
    }
    Task<Result<void>> bring_part(BringingBack* attempt, BlockRange blocks) {
        auto room = co_await volume->reserve(extent_record_bytes(64), soon());
        if (!room) co_return std::unexpected(room.error());
        Change change;
        const auto added = add_extent(change, attempt->fid(), blocks);
        if (!added) co_return added;
        const auto begun =
            volume->begin_part(*attempt, change, blocks, std::move(*room), Data::kNone);
        if (!begun) volume->give_back(last_allocated_);
        if (!begun) co_return begun;
        const auto finished = co_await volume->finish(&change);
        if (!finished) co_return std::unexpected(finished.error());
        co_return Result<void>{};
    }
    Task<Result<void>> commit(Change* change, Reservation room) {
        const auto begun =
            volume->begin(*change, std::move(room), Durability::kDurable, Data::kNone);
        if (!begun) co_return begun;
        const auto finished = co_await volume->finish(change);
        if (!finished) co_return std::unexpected(finished.error());
        co_return Result<void>{};
    }

    // -- what the tests do most --

    Copy copy_of(Fid fid, const VsnText& vsn, std::uint32_t file) {
        return {.fid = fid,
                .length = kBytes,
                .version = object(fid).content_version(),
                .cartridge = {.vsn = vsn, .generation = 1},
                .place = {.file = file},
                .block = file * 100ULL,
                .checksum = 7,
                .written_s = 1'800'000'000};
    }
    Result<Volume::CopiesAdded> add(std::vector<Copy> copies) {
        return run(volume->add_copies(std::move(copies), soon()));
    }
    Result<Volume::ReleasedBytes> release(Fid fid) {
        return run(volume->release(fid, object(fid).content_version(), soon()));
    }
    // An object of kBlocks blocks, with a copy, without its bytes.
    void make_released(Fid fid, std::uint32_t file = 1) {
        REQUIRE(run(write(fid, {.first = 0, .count = kBlocks})).has_value());
        REQUIRE(add({copy_of(fid, kFirst, file)}).has_value());
        REQUIRE(release(fid).has_value());
    }
    Result<bool> has_block(Fid fid, std::uint64_t block) {
        auto extents = volume->map().extents(fid, {.first = block, .count = 1});
        const auto found = extents.next();
        volume->map().release();
        if (!found) return std::unexpected(found.error());
        return found->has_value();
    }
    CheckReport check() {
        VolumeCheck check(*volume, {});
        REQUIRE(run(check.run()).has_value());
        return check.report();
    }
    // No faults; otherwise the first one.
    std::string fault() {
        const CheckReport report = check();
        return report.findings.empty() ? "" : report.findings.front().reason;
    }

    core::VirtualWorld world;
    core::Random random{1};
    devices::DiskImage image{64UL << 20};
    MapImage index_image;
    std::unique_ptr<SimulatedMachine> machine;
    std::unique_ptr<Volume> volume;

private:
    void start() {
        volume.reset();
        index_.reset();
        disk_.reset();
        if (machine) machine->drop_coroutines();
        machine = std::make_unique<SimulatedMachine>(world);
        disk_ = machine->plug_in(image, {.seed = 1});
        index_ = std::make_unique<MapIndex>(
            MapIndex::World{.reactor = machine->reactor(), .random = random}, index_image);
        volume = std::make_unique<Volume>(VolumeParts{.reactor = machine->reactor(),
                                                      .device = *disk_,
                                                      .index = *index_,
                                                      .events = events_},
                                          VolumeOptions{.slot = 3, .segment_blocks = 64});
    }

    std::unique_ptr<devices::MemoryDisk> disk_;
    std::unique_ptr<MapIndex> index_;
    core::NullEventSink events_;
    DiskRange last_allocated_;
};

template <typename T>
Errc code_of(const Result<T>& result) {
    REQUIRE(!result.has_value());
    return result.error().code;
}

}  // namespace

// -- copies --

TEST_CASE("store tape: copies are listed by object and in the order of the tape", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    REQUIRE(bench.run(bench.write(kOther, {.first = 0, .count = kBlocks})).has_value());
    Copy front = bench.copy_of(kObject, kFirst, 9);
    front.length = 4096;
    Copy back = bench.copy_of(kObject, kFirst, 2);
    back.offset = 4096;
    back.length = kBytes - 4096;
    Copy other = bench.copy_of(kOther, kFirst, 2);
    other.place.member = 1ULL << 40;
    const Copy second = bench.copy_of(kObject, kSecond, 1);

    const auto added = bench.add({front, back, other, second});
    REQUIRE(added.has_value());
    REQUIRE(added->live == 4);
    REQUIRE(added->dead == 0);
    bench.start_again(how);

    REQUIRE(bench.volume->copies_on(kFirst, {}, 100).value() == std::vector{back, other, front});
    REQUIRE(bench.volume->copies_on(kFirst, {}, 1).value() == std::vector{back});
    REQUIRE(bench.volume->copies_on(kFirst, {.file = 2, .member = 1}, 100).value() ==
            std::vector{other, front});
    REQUIRE(bench.volume->copies_of(kObject).value() == std::vector{front, second, back});
    const CartridgeUse use = bench.volume->cartridges().at(kFirst);
    REQUIRE(use.live_copies == 3);
    REQUIRE(use.live_bytes == 2 * kBytes);
    REQUIRE(use.dead_bytes() == 0);
    REQUIRE(bench.fault() == "");
    REQUIRE(bench.check().copies == 4);
}

TEST_CASE("store tape: a change of the content makes copies dead, one of attributes does not",
          "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    const Copy copy = bench.copy_of(kObject, kFirst, 1);
    REQUIRE(bench.add({copy}).has_value());
    Object renamed = bench.object(kObject);
    renamed.next_attributes();
    REQUIRE(bench.run(bench.put(kObject, renamed)).has_value());
    REQUIRE(bench.volume->copies_of(kObject).value() == std::vector{copy});

    SECTION("a write") {
        REQUIRE(bench.run(bench.write(kObject, {.first = 1, .count = 1})).has_value());
    }
    SECTION("a truncation") {
        REQUIRE(bench.run(bench.truncate(kObject, 2)).has_value());
    }
    SECTION("a removal") {
        REQUIRE(bench.run(bench.remove(kObject)).has_value());
    }
    SECTION("a version of which nobody says what it changed") {
        Object changed = renamed;
        ++changed.version;
        REQUIRE(bench.run(bench.put(kObject, changed)).has_value());
    }

    for (int i = 0; i < 2; ++i) {
        REQUIRE(bench.volume->copies_of(kObject)->empty());
        REQUIRE(bench.volume->copies_on(kFirst, {}, 100)->empty());
        const CartridgeUse use = bench.volume->cartridges().at(kFirst);
        REQUIRE(use.live_bytes == 0);
        REQUIRE(use.dead_bytes() == kBytes);
        REQUIRE(use.dead_copies() == 1);
        REQUIRE(bench.fault() == "");
        bench.start_again(how);
    }
}

TEST_CASE("store tape: a copy of an older content is counted as dead at once", "[store]") {
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    const Copy old = bench.copy_of(kObject, kFirst, 1);
    Copy of_none = old;
    of_none.fid = kOther;
    of_none.place.file = 2;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = 1})).has_value());

    const auto added = bench.add({old, of_none});

    REQUIRE(added.has_value());
    REQUIRE(added->live == 0);
    REQUIRE(added->dead == 2);
    REQUIRE(bench.volume->copies_of(kObject)->empty());
    REQUIRE(bench.volume->cartridges().at(kFirst).dead_bytes() == 2 * kBytes);
    REQUIRE(code_of(bench.release(kObject)) == Errc::kInvalid);
}

TEST_CASE("store tape: a copy replaces the one of the same bytes on its cartridge", "[store]") {
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    const Copy first = bench.copy_of(kObject, kFirst, 1);
    const Copy again = bench.copy_of(kObject, kFirst, 5);
    REQUIRE(bench.add({first}).has_value());
    REQUIRE(bench.add({first})->live == 1);
    REQUIRE(bench.volume->cartridges().at(kFirst).dead_bytes() == 0);

    REQUIRE(bench.add({again}).has_value());

    REQUIRE(bench.volume->copies_on(kFirst, {}, 9).value() == std::vector{again});
    REQUIRE(bench.volume->cartridges().at(kFirst).dead_bytes() == kBytes);
    REQUIRE(bench.fault() == "");
}

TEST_CASE("store tape: copies that cannot be are refused, and with them all of their commit",
          "[store]") {
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    REQUIRE(bench.run(bench.write(kOther, {.first = 0, .count = kBlocks})).has_value());
    const Copy good = bench.copy_of(kObject, kFirst, 1);
    const auto refused = [&](Copy bad) { return code_of(bench.add({good, bad})); };
    Copy other = bench.copy_of(kOther, kFirst, 2);

    Copy bad = other;
    bad.place = good.place;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = other;
    bad.length = kBytes + 1;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad.length = 0;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = other;
    bad.place.file = 0;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = other;
    bad.cartridge.vsn.front() = ' ';
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = other;
    bad.cartridge.generation = 2;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = good;
    bad.place.file = 3;
    REQUIRE(refused(bad) == Errc::kInvalid);
    REQUIRE(bench.volume->copies_of(kObject)->empty());
    REQUIRE(bench.volume->cartridges().empty());

    REQUIRE(bench.add({good}).has_value());
    bad = other;
    bad.place = good.place;
    REQUIRE(code_of(bench.add({bad})) == Errc::kInvalid);
}

TEST_CASE("store tape: an object has a bounded number of copies", "[store]") {
    TapeBench bench;
    constexpr std::uint64_t kMany = kCopiesOfObjectMax + 1;
    Object sparse{.size_bytes = kMany, .version = 1, .owner = "alice", .group = "users"};
    REQUIRE(bench.run(bench.put(kObject, sparse)).has_value());
    std::vector<Copy> copies;
    for (std::uint64_t i = 0; i < kMany; ++i) {
        Copy copy = bench.copy_of(kObject, kFirst, 1);
        copy.offset = i;
        copy.length = 1;
        copy.place.member = i;
        copies.push_back(copy);
        const bool is_last = i + 1 == kMany;
        if (copies.size() < Volume::kCopiesAtOnceMax && !is_last) continue;
        const auto added = bench.add(std::exchange(copies, {}));
        if (!is_last) REQUIRE(added.has_value());
        if (is_last) REQUIRE(code_of(added) == Errc::kInvalid);
    }
    REQUIRE(bench.volume->copies_of(kObject)->size() == kCopiesOfObjectMax);

    REQUIRE(bench.run(bench.remove(kObject)).has_value());
    REQUIRE(bench.volume->cartridges().at(kFirst).live_copies == 0);
    REQUIRE(bench.fault() == "");
}

TEST_CASE("store tape: a cartridge is formatted when its copies are forgotten", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    const Copy old = bench.copy_of(kObject, kFirst, 1);
    REQUIRE(bench.add({old}).has_value());
    Copy formatted = old;
    formatted.cartridge.generation = 2;
    REQUIRE(code_of(bench.add({formatted})) == Errc::kBusy);
    const auto forget = [&](Volume::Loss loss) {
        return bench.run(bench.volume->forget_cartridge(kFirst, loss, bench.soon()));
    };

    REQUIRE(bench.release(kObject).has_value());
    REQUIRE(code_of(forget(Volume::Loss::kRefused)) == Errc::kBusy);
    REQUIRE(bench.add({bench.copy_of(kObject, kSecond, 1)}).has_value());
    REQUIRE(forget(Volume::Loss::kRefused).has_value());
    REQUIRE(!bench.volume->cartridges().contains(kFirst));
    bench.start_again(how);
    REQUIRE(!bench.volume->cartridges().contains(kFirst));
    REQUIRE(bench.add({formatted}).has_value());
    REQUIRE(bench.volume->cartridges().at(kFirst).cartridge.generation == 2);
    REQUIRE(code_of(bench.add({old})) == Errc::kInvalid);
    REQUIRE(bench.fault() == "");
}

TEST_CASE("store tape: the last copy of a released object is dropped only as a loss", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    const Copy first = bench.copy_of(kObject, kFirst, 1);
    const Copy second = bench.copy_of(kObject, kSecond, 1);
    REQUIRE(bench.add({second}).has_value());
    const auto drop = [&](std::vector<CopyKey> keys, Volume::Loss loss) {
        return bench.run(bench.volume->drop_copies(std::move(keys), loss, bench.soon()));
    };

    REQUIRE(code_of(drop({key_of(first), key_of(second)}, Volume::Loss::kRefused)) == Errc::kBusy);
    REQUIRE(drop({key_of(first)}, Volume::Loss::kRefused).has_value());
    REQUIRE(bench.volume->cartridges().at(kFirst).dead_bytes() == kBytes);
    REQUIRE(code_of(drop({key_of(second)}, Volume::Loss::kRefused)) == Errc::kBusy);
    REQUIRE(bench.fault() == "");
    REQUIRE(drop({key_of(second)}, Volume::Loss::kAccepted).has_value());
    REQUIRE(bench.fault() == "bytes of a released object have no copy on a cartridge");
}

TEST_CASE("store tape: a released object keeps its copy until another has as much", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    Copy shorter = bench.copy_of(kObject, kFirst, 2);
    shorter.length = kBytes - 1;
    REQUIRE(code_of(bench.add({shorter})) == Errc::kBusy);
    REQUIRE(bench.add({bench.copy_of(kObject, kFirst, 2)}).has_value());
    REQUIRE(bench.fault() == "");
}

// -- released objects --

TEST_CASE("store tape: an object is released if copies have all its bytes", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    const Object object = bench.object(kObject);
    Copy front = bench.copy_of(kObject, kFirst, 1);
    front.length = 5000;
    Copy back = bench.copy_of(kObject, kSecond, 1);
    back.offset = 5001;
    back.length = kBytes - 5001;
    REQUIRE(code_of(bench.release(kObject)) == Errc::kInvalid);
    REQUIRE(bench.add({front, back}).has_value());
    REQUIRE(code_of(bench.release(kObject)) == Errc::kInvalid);
    front.length = 5001;
    front.place.file = 2;
    REQUIRE(bench.add({front}).has_value());
    const auto too_old =
        bench.run(bench.volume->release(kObject, object.content_version() - 1, bench.soon()));
    REQUIRE(code_of(too_old) == Errc::kBusy);
    const std::uint64_t free_before = bench.volume->space_use().free_blocks;

    const auto released = bench.release(kObject);

    REQUIRE(released.has_value());
    REQUIRE(released->blocks == kBlocks);
    REQUIRE(code_of(bench.release(kObject)) == Errc::kInvalid);
    REQUIRE(bench.run(bench.volume->settle_space(bench.soon())).has_value());
    REQUIRE(bench.volume->space_use().free_blocks == free_before + kBlocks);
    bench.start_again(how);
    REQUIRE(bench.object(kObject).is_released);
    REQUIRE(bench.object(kObject).released_blocks == kBlocks);
    REQUIRE(bench.object(kObject).content_version() == object.content_version());
    REQUIRE(code_of(bench.has_block(kObject, 0)) == Errc::kBusy);
    REQUIRE(bench.has_block(kOther, 0) == false);
    REQUIRE(bench.fault() == "");
}

TEST_CASE("store tape: a record of its own cannot release an object", "[store]") {
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    Object released = bench.object(kObject);
    released.is_released = true;
    REQUIRE(code_of(bench.run(bench.put(kObject, released))) == Errc::kInvalid);
    REQUIRE(bench.add({bench.copy_of(kObject, kFirst, 1)}).has_value());
    released.next_content();
    REQUIRE(code_of(bench.run(bench.put(kObject, released))) == Errc::kInvalid);
    REQUIRE(bench.volume->serving());
    REQUIRE_FALSE(bench.object(kObject).is_released);
}

TEST_CASE("store tape: a released object changes only where no bytes are needed", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    const Object released = bench.object(kObject);

    REQUIRE(code_of(bench.run(bench.write(kObject, {.first = 0, .count = 1}))) == Errc::kBusy);
    REQUIRE(code_of(bench.run(bench.punch(kObject, {.first = 0, .count = 1}))) == Errc::kBusy);
    REQUIRE(code_of(bench.run(bench.truncate(kObject, 1))) == Errc::kBusy);
    Object other = released;
    other.size_bytes = kBytes + 1;
    REQUIRE(code_of(bench.run(bench.put(kObject, other))) == Errc::kBusy);
    other = released;
    other.is_released = false;
    other.released_blocks = 0;
    REQUIRE(code_of(bench.run(bench.put(kObject, other))) == Errc::kBusy);
    other.next_content();
    REQUIRE(code_of(bench.run(bench.put(kObject, other))) == Errc::kBusy);
    REQUIRE(bench.volume->serving());

    Object renamed = released;
    renamed.next_attributes();
    REQUIRE(bench.run(bench.put(kObject, renamed)).has_value());
    REQUIRE(bench.object(kObject).is_released);
    REQUIRE(bench.volume->copies_of(kObject)->size() == 1);
    SECTION("it is truncated to nothing") {
        REQUIRE(bench.run(bench.truncate(kObject, 0)).has_value());
        REQUIRE_FALSE(bench.object(kObject).is_released);
        REQUIRE(bench.has_block(kObject, 0) == false);
    }
    SECTION("it is removed") {
        REQUIRE(bench.run(bench.remove(kObject)).has_value());
    }
    REQUIRE(bench.volume->cartridges().at(kFirst).dead_bytes() == kBytes);
    REQUIRE(bench.fault() == "");
}

// -- bringing back --

TEST_CASE("store tape: bytes are back when all parts are there, not before", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    auto attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
    REQUIRE(attempt.has_value());
    const auto end = [&] {
        return bench.run(bench.volume->end_bringing_back(&*attempt, std::nullopt, bench.soon()));
    };
    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 4, .count = 4})).has_value());
    REQUIRE(attempt->missing() == BlockRange{.first = 0, .count = 4});
    REQUIRE(code_of(end()) == Errc::kInvalid);
    REQUIRE(code_of(bench.has_block(kObject, 5)) == Errc::kBusy);
    REQUIRE(bench.fault() == "");

    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 0, .count = 4})).has_value());
    REQUIRE(end().has_value());

    REQUIRE_FALSE(bench.object(kObject).is_released);
    REQUIRE(bench.has_block(kObject, 5) == true);
    REQUIRE(bench.volume->copies_of(kObject)->size() == 1);
    REQUIRE(code_of(end()) == Errc::kBusy);
    REQUIRE(bench.release(kObject)->blocks == kBlocks);
    REQUIRE(bench.fault() == "");
}

TEST_CASE("store tape: what an attempt has left is freed by the next one", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    bench.make_released(kObject);
    REQUIRE(bench.run(bench.volume->settle_space(bench.soon())).has_value());
    auto attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 2, .count = 3})).has_value());
    bench.start_again(how);

    REQUIRE(bench.object(kObject).is_released);
    REQUIRE(bench.volume->owners_at_open().at(0).at("alice").blocks == kBlocks);
    REQUIRE(bench.fault() == "");
    attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
    REQUIRE(attempt.has_value());
    REQUIRE(attempt->missing().count == kBlocks);
    REQUIRE(bench.run(bench.volume->drop_parts(kObject, bench.soon())) == 0U);
    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 0, .count = 5})).has_value());
    REQUIRE(bench.run(bench.volume->drop_parts(kObject, bench.soon())) == 5U);
}

TEST_CASE("store tape: an attempt ends with the content that it was made for", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    auto attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
    REQUIRE(bench.run(bench.bring_part(&*attempt, {.first = 0, .count = kBlocks})).has_value());
    REQUIRE(bench.run(bench.truncate(kObject, 0)).has_value());

    REQUIRE(code_of(bench.run(bench.bring_part(&*attempt, {.first = 0, .count = 1}))) ==
            Errc::kBusy);
    REQUIRE(code_of(bench.run(bench.volume->end_bringing_back(&*attempt, {}, bench.soon()))) ==
            Errc::kBusy);
    REQUIRE(bench.has_block(kObject, 0) == false);
    REQUIRE(code_of(bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()))) ==
            Errc::kInvalid);
    REQUIRE(code_of(bench.run(bench.volume->begin_bringing_back(kOther, bench.soon()))) ==
            Errc::kNotFound);
}

TEST_CASE("store tape: an attempt knows which blocks are missing", "[store]") {
    core::Random random(7);
    for (int round = 0; round < 200; ++round) {
        constexpr std::uint64_t kCount = 40;
        BringingBack attempt(kObject, 1, kCount * 4096 - random.below(4096));
        std::vector<bool> there(kCount);
        while (!attempt.is_complete()) {
            const std::uint64_t first = random.below(kCount);
            const BlockRange range{.first = first, .count = random.below(kCount - first + 1)};
            attempt.add(range);
            for (std::uint64_t i = range.first; i < range.end(); ++i) there[i] = true;
            const auto gap = std::ranges::find(there, false);
            const auto gap_end = std::find(gap, there.end(), true);
            REQUIRE(attempt.missing().count == static_cast<std::uint64_t>(gap_end - gap));
            if (gap == there.end()) continue;
            REQUIRE(attempt.missing().first == static_cast<std::uint64_t>(gap - there.begin()));
        }
        REQUIRE(std::ranges::find(there, false) == there.end());
    }
}

// -- recalls --

TEST_CASE("store tape: recalls are listed by ticket until they end", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    const auto put = [&](Fid fid, const Recall& recall) {
        return bench.run(bench.volume->put_recall(fid, recall, bench.soon()));
    };
    const auto tickets = [&] {
        std::vector<std::uint64_t> all;
        const auto listed = bench.run(bench.volume->recalls());
        for (const RecallOf& each : listed.value()) all.push_back(each.recall.ticket);
        return all;
    };
    Recall recall{.ticket = 9,
                  .priority = -3,
                  .asked = {1'800'000'000'000'000'000},
                  .pinned_until = {1'800'000'001'000'000'000},
                  .requester = "ann"};
    recall.client.bytes.back() = std::byte{5};
    REQUIRE(code_of(put(kObject, recall)) == Errc::kNotFound);
    bench.make_released(kObject, 1);
    bench.make_released(kOther, 2);
    REQUIRE(put(kObject, recall).has_value());
    REQUIRE(put(kOther, {.ticket = 4}).has_value());
    REQUIRE(put(kOther, {.ticket = 5}).has_value());
    bench.start_again(how);

    REQUIRE(tickets() == std::vector<std::uint64_t>{5, 9});
    REQUIRE(bench.volume->map().find_recall(kObject)->value() == recall);
    bench.volume->map().release();
    REQUIRE(bench.check().recalls == 2);
    REQUIRE(bench.fault() == "");
    SECTION("the object goes") {
        REQUIRE(bench.run(bench.remove(kObject)).has_value());
    }
    SECTION("it is cancelled") {
        REQUIRE(bench.run(bench.volume->end_recall(kObject, bench.soon())).has_value());
        REQUIRE(bench.run(bench.volume->end_recall(kObject, bench.soon())).has_value());
    }
    SECTION("the bytes are back") {
        auto attempt = bench.run(bench.volume->begin_bringing_back(kObject, bench.soon()));
        attempt->add({.first = 0, .count = kBlocks});  // Zeros.
        const auto ended =
            bench.run(bench.volume->end_bringing_back(&*attempt, std::nullopt, bench.soon()));
        REQUIRE(ended.has_value());
    }
    REQUIRE(tickets() == std::vector<std::uint64_t>{5});
    bench.start_again(how);
    REQUIRE(tickets() == std::vector<std::uint64_t>{5});
    auto attempt = bench.run(bench.volume->begin_bringing_back(kOther, bench.soon()));
    attempt->add({.first = 0, .count = kBlocks});
    const Recall pin{.pinned_until = {1'800'000'002'000'000'000}};
    REQUIRE(bench.run(bench.volume->end_bringing_back(&*attempt, pin, bench.soon())).has_value());
    bench.start_again(how);
    REQUIRE(bench.volume->map().find_recall(kOther)->value() == pin);
    bench.volume->map().release();
    REQUIRE(bench.fault() == "");
}

// -- checks --

TEST_CASE("store tape: a check finds what does not agree", "[store]") {
    TapeBench bench;
    bench.make_released(kObject);
    REQUIRE(bench.run(bench.volume->put_recall(kObject, {.ticket = 1}, bench.soon())).has_value());
    const Copy copy = bench.copy_of(kObject, kFirst, 1);
    REQUIRE(bench.fault() == "");
    const auto erase = [&](const Key& key) {
        REQUIRE(bench.run(bench.volume->close()).has_value());
        const auto text = as_text(key.bytes());
        REQUIRE(bench.index_image.entries.erase(
                    decltype(bench.index_image.entries)::key_type(text.begin(), text.end())) == 1);
    };
    std::string wanted;
    SECTION("a place is missing") {
        erase(place_key(kFirst, copy.place));
        wanted = "the place of a copy is not in the index of its cartridge";
    }
    SECTION("a copy is missing") {
        erase(copy_key(key_of(copy)));
        wanted = "a place of a cartridge without its copy";
    }
    SECTION("an object is missing") {
        erase(Key::object(kObject));
        wanted = "a copy of no object";
    }
    bench.start_closed(Start::kWithIndex);
    REQUIRE(bench.fault() == wanted);
}

}  // namespace fopd::store::testing::tape

// Goal: what a volume promises of copies on cartridges, one promise each. Method: a volume on a
// simulated disk, which is opened again with its index and without.

#include <string>
#include <utility>
#include <vector>

#include "tests/store/volume_tape_bench.h"

namespace fopd::store::testing::tape {

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
    other.position.member = 1ULL << 40;
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
        REQUIRE(use.live_copies == 0);
        REQUIRE(use.total_copies == 1);
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
    of_none.position.file = 2;
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
    bad.position = good.position;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = other;
    bad.length = kBytes + 1;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad.length = 0;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = other;
    bad.position.file = 0;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = other;
    bad.cartridge.vsn.front() = ' ';
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = other;
    bad.cartridge.generation = 2;
    REQUIRE(refused(bad) == Errc::kInvalid);
    bad = good;
    bad.position.file = 3;
    REQUIRE(refused(bad) == Errc::kInvalid);
    REQUIRE(bench.volume->copies_of(kObject)->empty());
    REQUIRE(bench.volume->cartridges().empty());

    REQUIRE(bench.add({good}).has_value());
    bad = other;
    bad.position = good.position;
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
        copy.position.member = i;
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

}  // namespace fopd::store::testing::tape

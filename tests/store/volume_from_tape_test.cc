// Goal: an object is made of its copies on cartridges alone as a whole, and never in the place of
// bytes that are here. Method: as volume_tape_test.cc.

#include <string>
#include <utility>
#include <vector>

#include "tests/store/volume_tape_bench.h"

namespace fopd::store::testing::tape {

namespace {

Object released(std::uint64_t version) {
    return {.size_bytes = kBytes,
            .version = version,
            .mode = 0640,
            .is_released = true,
            .released_blocks = kBlocks,
            .owner = "ann",
            .group = "staff"};
}

Copy copy_of(Fid fid, std::uint64_t version, std::uint32_t file) {
    return {.fid = fid,
            .length = kBytes,
            .version = version,
            .cartridge = {.vsn = kFirst, .generation = 1},
            .position = {.file = file},
            .block = file * 100ULL,
            .checksum = 7};
}

Task<Result<void>> put(TapeBench* bench, Object object, std::vector<Copy> copies) {
    auto room =
        co_await bench->volume->reserve(Volume::from_tape_bytes(copies.size()), bench->soon());
    if (!room) co_return std::unexpected(room.error());
    Change change;
    const auto filled = bench->volume->put_from_tape(change, kObject, object, std::move(copies));
    if (!filled) co_return filled;
    co_return co_await bench->commit(&change, std::move(*room));
}

Result<void> put_from_tape(TapeBench& bench, const Object& object, std::vector<Copy> copies) {
    return bench.run(put(&bench, object, std::move(copies)));
}

}  // namespace

TEST_CASE("store tape: an object is made of copies that have all of its bytes", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    Copy front = copy_of(kObject, 5, 1);
    front.length = 4096;
    Copy back = copy_of(kObject, 5, 2);
    back.offset = 8192;
    back.length = kBytes - back.offset;
    CHECK(code_of(put_from_tape(bench, released(5), {front})) == Errc::kInvalid);
    CHECK(code_of(put_from_tape(bench, released(5), {front, back})) == Errc::kInvalid);
    CHECK(code_of(put_from_tape(bench, released(5), {copy_of(kOther, 5, 1)})) == Errc::kInvalid);
    CHECK(code_of(put_from_tape(bench, released(5), {copy_of(kObject, 4, 1)})) == Errc::kInvalid);
    back.offset = 4096;
    back.length = kBytes - back.offset;

    REQUIRE(put_from_tape(bench, released(5), {back, front}).has_value());

    bench.start_again(how);
    const Object object = bench.object(kObject);
    CHECK(object.is_released);
    CHECK(object.content_version() == 5);
    CHECK(object.released_blocks == kBlocks);
    CHECK(object.mode == 0640);
    CHECK(bench.volume->copies_of(kObject)->size() == 2);
    CHECK(code_of(bench.has_block(kObject, 0)) == Errc::kBusy);
    CHECK(bench.fault() == "");
}

TEST_CASE("store tape: newer content from tape replaces what is on tape only", "[store]") {
    const auto how = GENERATE(Start::kWithIndex, Start::kWithoutIndex);
    TapeBench bench;
    REQUIRE(put_from_tape(bench, released(5), {copy_of(kObject, 5, 1)}).has_value());
    CHECK(code_of(put_from_tape(bench, released(5), {copy_of(kObject, 5, 2)})) == Errc::kBusy);
    CHECK(code_of(put_from_tape(bench, released(4), {copy_of(kObject, 4, 2)})) == Errc::kBusy);

    REQUIRE(put_from_tape(bench, released(6), {copy_of(kObject, 6, 2)}).has_value());

    bench.start_again(how);
    CHECK(bench.object(kObject).content_version() == 6);
    const auto copies = bench.volume->copies_of(kObject);
    REQUIRE(copies->size() == 1);
    CHECK(copies->front().position.file == 2);
    CHECK(bench.volume->cartridges().at(kFirst).live_copies == 1);
    CHECK(bench.volume->cartridges().at(kFirst).total_copies == 2);
    CHECK(bench.fault() == "");
}

TEST_CASE("store tape: what is on the disk is not replaced from tape", "[store]") {
    TapeBench bench;
    REQUIRE(bench.run(bench.write(kObject, {.first = 0, .count = kBlocks})).has_value());
    CHECK(code_of(put_from_tape(bench, released(9), {copy_of(kObject, 9, 1)})) == Errc::kBusy);
    CHECK(bench.volume->serving());
    CHECK_FALSE(bench.object(kObject).is_released);
    CHECK(bench.has_block(kObject, 0) == true);
    CHECK(bench.fault() == "");
}

TEST_CASE("store fid: an id in another slot tells the one with which it was made", "[store]") {
    constexpr Fid made{.high = 7ULL << 48 | 12, .low = 99};
    static_assert(made.slot() == 7);
    CHECK(made.moved_to(7) == made);
    CHECK_FALSE(made.is_moved());
    const auto moved = made.moved_to(2);
    REQUIRE(moved.has_value());
    CHECK(moved->slot() == 2);
    CHECK(moved->is_moved());
    CHECK(*moved != made);
    CHECK(moved->origin() == made);
    CHECK_FALSE(moved->moved_to(3).has_value());
    const Fid first{.high = 12, .low = 99};
    CHECK(first.moved_to(2)->origin() == first);
    CHECK(first.moved_to(2) != moved);
    CHECK_FALSE((Fid{.high = 0xffffULL << 48, .low = 1}).moved_to(2).has_value());
}

}  // namespace fopd::store::testing::tape

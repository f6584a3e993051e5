// Goal: copies on cartridges take little of an index, and its keys and values are as
// docs/formats/index.md says. Method: an index of LMDB with many copies; for the bytes see
// index_values_test.cc.
#include <vector>

#include "store/copies.h"
#include "store/extent.h"
#include "store/layered_index.h"
#include "tests/store/index_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

constexpr VsnText kVsn{'A', 'A', '0', '0', '0', '1'};

Copy copy_of(std::uint64_t number, std::uint64_t fid) {
    return {.fid = {.high = 3ULL << 48 | 77, .low = fid},
            .length = 100'000'000 + number,
            .version = 1,
            .cartridge = {.vsn = kVsn, .generation = 1},
            .position = {.file = static_cast<std::uint32_t>(1 + number / 100),
                         .member = number % 100 * 100'000'000},
            .block = number * 1000,
            .checksum = static_cast<std::uint32_t>(number * 2'654'435'761U)};
}

}  // namespace

TEST_CASE("store index copies: a copy takes at most 200 bytes of the index", "[store]") {
    constexpr std::uint64_t kCopies = 20'000;
    const bool is_scattered = GENERATE(false, true);
    IndexStage stage(IndexKind::kLmdb);
    REQUIRE(stage.create().has_value());
    const std::uint64_t before = stage.index().figures().size_bytes;
    LayeredIndex index(stage.index());
    Copies copies(index);
    core::Random random(5);
    std::uint64_t applied = 0;
    for (std::uint64_t i = 0; i < kCopies; ++i) {
        const std::uint64_t fid = is_scattered ? random.next() : i;
        REQUIRE(copies.put(copy_of(i, fid)).has_value());
        if (i % 1000 != 999) continue;
        index.release();
        const std::uint64_t next = ++applied;
        REQUIRE(stage.run(index.checkpoint(next)).has_value());
    }
    const std::uint64_t bytes = stage.index().figures().size_bytes - before;
    CAPTURE(is_scattered, bytes / kCopies);
    REQUIRE(bytes <= 200 * kCopies);
    REQUIRE(copies.use_of(kVsn).live_copies == kCopies);
}

TEST_CASE("store index copies: what is not whole is refused", "[store]") {
    const Copy copy = copy_of(3, 4);
    ValueBuffer buffer;
    const Key key = copy_key(key_of(copy));
    const Bytes value = write_copy(buffer, copy);
    REQUIRE(read_copy(key, value) == copy);
    REQUIRE(!read_copy(key, value.first(value.size() - 1)).has_value());
    REQUIRE(!read_copy(key.bytes().first(30), value).has_value());
    REQUIRE(!read_copy(Key::total(kVsn), value).has_value());
    std::vector<std::byte> no_file(value.begin(), value.end());
    std::ranges::fill(std::span(no_file).subspan(28, 4), std::byte{0});
    REQUIRE(!read_copy(key, Bytes(no_file)).has_value());
    const Key near_end = Key::copy(copy.fid, kObjectBytesMax - copy.length + 1, kVsn);
    REQUIRE(!read_copy(near_end, value).has_value());
    std::vector<std::byte> bad_vsn(key.bytes().begin(), key.bytes().end());
    bad_vsn.back() = std::byte{0x80};
    REQUIRE(!read_copy(Bytes(bad_vsn), value).has_value());

    ValueBuffer other;
    const Key position = position_key(kVsn, copy.position);
    const Bytes placed = write_position(other, key_of(copy));
    REQUIRE(read_position(position, placed)->key == key_of(copy));
    REQUIRE(read_position(position, placed)->position == copy.position);
    REQUIRE(!read_position(position, placed.first(15)).has_value());
    std::vector<std::byte> long_placed(placed.begin(), placed.end());
    long_placed.resize(kPositionValueBytesMax);
    REQUIRE(!read_position(position, Bytes(long_placed)).has_value());
    long_placed.back() = std::byte{1};
    REQUIRE(read_position(position, Bytes(long_placed))->key.offset == 1ULL << 56);
    REQUIRE(!read_position(key, placed).has_value());

    const CartridgeTotal total{.cartridge = copy.cartridge, .copies = 5, .bytes = 6};
    const Bytes written = write_total(other, total);
    REQUIRE(read_total(Key::total(kVsn), written) == total);
    REQUIRE(!read_total(Key::total(kVsn), written.first(19)).has_value());

    Recall recall{.ticket = 1, .priority = -1, .requester = std::string(kPrincipalBytesMax, 'a')};
    const Bytes recalled = write_recall(other, recall);
    REQUIRE(read_recall(recalled) == recall);
    REQUIRE(recalled.size() + 17 == kRecallBytesMax);
    for (std::size_t size = 0; size < recalled.size(); ++size) {
        REQUIRE(!read_recall(recalled.first(size)).has_value());
    }
}

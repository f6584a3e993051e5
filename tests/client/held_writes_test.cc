// Goal: what is held is what was written last and is not durable, byte by byte.
// Method: random writes, cuts and releases against a map of bytes.
#include "client/held_writes.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

namespace fopd::client {

namespace {

constexpr fop::Fid kOne{.high = 1ULL << 48, .low = 1};
constexpr fop::Fid kTwo{.high = 2ULL << 48, .low = 1};

fop::Receipt receipt(std::uint64_t seq, std::uint64_t incarnation = 1, std::uint16_t slot = 1) {
    return {.incarnation = incarnation, .seq = seq, .slot = slot};
}

std::vector<std::byte> bytes_of(std::size_t count, unsigned value) {
    return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

}  // namespace

TEST_CASE("client held writes: a later write takes what it covers", "[client]") {
    HeldWrites held;
    held.add(kOne, 10, bytes_of(10, 1), receipt(1));
    held.add(kOne, 13, bytes_of(3, 2), receipt(2));
    REQUIRE(held.bytes() == 10);

    // What is left of the first one.
    held.release(receipt(1));
    const auto left = held.part_behind(receipt(0), kOne);

    REQUIRE(held.bytes() == 3);
    REQUIRE(left.has_value());
    REQUIRE(left->offset == 13);
    REQUIRE(left->bytes == bytes_of(3, 2));
}

TEST_CASE("client held writes: the order is the server's, not that of the replies", "[client]") {
    HeldWrites held;
    held.add(kOne, 13, bytes_of(3, 2), receipt(2));
    SECTION("an earlier write") {
        held.add(kOne, 10, bytes_of(10, 1), receipt(1));
        REQUIRE(held.bytes() == 10);

        // What is left of the first one, as when a crash has lost the second alone.
        held.release(receipt(1));
        const auto left = held.part_behind(receipt(1), kOne);
        REQUIRE(held.bytes() == 3);
        REQUIRE(left->offset == 13);
        REQUIRE(left->bytes == bytes_of(3, 2));
    }
    SECTION("an earlier change that covers it") {
        held.cut(kOne, {.offset = 0, .length = 100}, receipt(1));
        held.clear(kOne, {.offset = 0, .length = 100}, receipt(1));
        REQUIRE(held.part_behind(receipt(1), kOne)->bytes == bytes_of(3, 2));
    }
    SECTION("a write of a newer incarnation with a smaller number") {
        held.add(kOne, 13, bytes_of(3, 3), receipt(1, 2));
        held.add(kOne, 13, bytes_of(3, 4), receipt(9, 1));
        REQUIRE_FALSE(held.part_behind(receipt(0), kOne).has_value());
        REQUIRE(held.part_behind(receipt(0, 2), kOne)->bytes == bytes_of(3, 3));
    }
}

TEST_CASE("client held writes: receipts are the last of each slot and incarnation", "[client]") {
    HeldWrites held;
    REQUIRE(held.receipts().empty());
    held.add(kOne, 0, bytes_of(1, 1), receipt(5));
    held.add(kOne, 1, bytes_of(1, 1), receipt(7));
    held.add(kOne, 2, bytes_of(1, 1), receipt(6, 2));
    held.add(kTwo, 0, bytes_of(1, 1), receipt(1, 9, 2));

    const std::vector<fop::Receipt> last{receipt(7), receipt(6, 2), receipt(1, 9, 2)};
    REQUIRE(held.receipts() == last);
    REQUIRE(held.has_other(1, 1));
    REQUIRE(held.has_other(1, 2));
    REQUIRE(held.has_other(2, 1));
    REQUIRE_FALSE(held.has_other(2, 9));
    REQUIRE_FALSE(held.has_other(3, 1));

    held.release(receipt(100));
    REQUIRE_FALSE(held.has_other(1, 2));
    REQUIRE(held.bytes() == 2);
    held.forget(kTwo);
    held.forget(kOne);
    REQUIRE(held.empty());
    REQUIRE(held.bytes() == 0);
}

TEST_CASE("client held writes: a receipt selects parts of its slot and incarnation only",
          "[client]") {
    HeldWrites held;
    held.add(kOne, 0, bytes_of(1, 1), receipt(5));
    held.add(kOne, 4, bytes_of(1, 1), receipt(8, 2));
    REQUIRE_FALSE(held.part_behind(receipt(5), kOne).has_value());
    REQUIRE(held.part_behind(receipt(4), kOne)->offset == 0);
    REQUIRE(held.part_behind(receipt(4, 2), kOne)->offset == 4);
    REQUIRE_FALSE(held.part_behind(receipt(0, 3), kOne).has_value());
    REQUIRE_FALSE(held.part_behind(receipt(0, 1, 2), kOne).has_value());
}

TEST_CASE("client held writes: a cleared range is zeros, and keeps the object's end", "[client]") {
    HeldWrites held;
    held.add(kOne, 10, bytes_of(10, 1), receipt(1));
    held.add(kOne, 20, bytes_of(5, 2), receipt(2));
    SECTION("its end is cleared") {
        held.clear(kOne, {.offset = 15, .length = 100}, receipt(9));
        REQUIRE(held.bytes() == 6);
        const auto end = held.part_behind(receipt(1), kOne);
        REQUIRE(end->offset == 24);
        REQUIRE(end->bytes == bytes_of(1, 0));

        // As often as one likes.
        held.clear(kOne, {.offset = 0, .length = 25}, receipt(9));
        REQUIRE(held.bytes() == 1);
        held.release(receipt(2));
        REQUIRE(held.empty());
    }
    SECTION("its end is not cleared") {
        held.clear(kOne, {.offset = 0, .length = 24}, receipt(9));
        REQUIRE(held.bytes() == 1);
        REQUIRE(held.part_behind(receipt(0), kOne)->bytes == bytes_of(1, 2));
    }
    SECTION("nothing is there") {
        held.clear(kOne, {.offset = 25, .length = 10}, receipt(9));
        held.clear(kOne, {.offset = 0, .length = 10}, receipt(9));
        held.clear(kOne, {.offset = 12, .length = 0}, receipt(9));
        held.clear(kTwo, {.offset = 0, .length = 100}, receipt(9));
        REQUIRE(held.bytes() == 15);
    }
}

TEST_CASE("client held writes: random changes leave the same as in a map of bytes", "[client]") {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        HeldWrites held;
        std::map<std::uint64_t, std::pair<std::byte, std::uint64_t>> model;  // With seq.
        const auto overwrite = [&](const fop::Range& range, std::uint64_t seq) {
            std::erase_if(model, [&](const auto& each) {
                const bool is_in = each.first >= range.offset && each.first < range.end();
                return is_in && each.second.second <= seq;
            });
        };
        for (std::uint64_t step = 1; step <= 60; ++step) {
            // Replies overtake each other.
            const std::uint64_t seq = step + random.below(8);
            const fop::Range range{.offset = random.below(100), .length = 1 + random.below(30)};
            const auto value = static_cast<unsigned>(1 + random.below(255));
            switch (random.below(5)) {
                case 4: {
                    held.clear(kOne, range, receipt(seq));
                    std::optional<std::pair<std::uint64_t, std::uint64_t>> end;
                    if (!model.empty()) {
                        const auto& [at, last] = *model.rbegin();
                        const bool is_in = at >= range.offset && at < range.end();
                        if (is_in && last.second <= seq) end = {at, last.second};
                    }
                    overwrite(range, seq);
                    if (end) model[end->first] = {std::byte{0}, end->second};
                    break;
                }
                case 0:
                    held.cut(kOne, range, receipt(seq));
                    overwrite(range, seq);
                    break;
                case 1: {
                    const std::uint64_t durable = random.below(seq);
                    held.release(receipt(durable));
                    std::erase_if(model,
                                  [&](const auto& each) { return each.second.second <= durable; });
                    break;
                }
                default:
                    held.add(kOne, range.offset, bytes_of(range.length, value), receipt(seq));
                    overwrite(range, seq);
                    for (auto at = range.offset; at < range.end(); ++at) {
                        model.try_emplace(at, static_cast<std::byte>(value), seq);
                    }
            }
            REQUIRE(held.bytes() == model.size());
        }

        while (const auto part = held.part_behind(receipt(0), kOne)) {
            for (std::size_t i = 0; i < part->bytes.size(); ++i) {
                const auto found = model.find(part->offset + i);
                REQUIRE(found != model.end());
                REQUIRE(found->second.first == part->bytes[i]);
                model.erase(found);
            }
            held.drop(kOne, part->range());
        }
        REQUIRE(model.empty());
        REQUIRE(held.empty());
    }
}

}  // namespace fopd::client

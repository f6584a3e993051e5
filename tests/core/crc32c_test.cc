#include "core/crc32c.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

namespace fopd::core {

namespace {

// From the definition, bit by bit.
std::uint32_t reference(std::span<const std::byte> bytes, std::uint32_t seed = 0) {
    std::uint32_t crc = ~seed;
    for (const std::byte byte : bytes) {
        crc ^= static_cast<std::uint32_t>(byte);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

std::vector<std::byte> random_bytes(Random& random, std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random.below(256));
    return bytes;
}

Crc32cFunction each_function() {
    return GENERATE(from_range(crc32c_functions()));
}

}  // namespace

TEST_CASE("core crc32c: the vectors of RFC 3720", "[core]") {
    const Crc32cFunction function = each_function();
    std::array<std::byte, 32> bytes{};
    REQUIRE(function(bytes, 0) == 0x8a9136aa);
    bytes.fill(std::byte{0xff});
    REQUIRE(function(bytes, 0) == 0x62a8ab43);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
    REQUIRE(function(bytes, 0) == 0x46dd794e);
    std::ranges::reverse(bytes);
    REQUIRE(function(bytes, 0) == 0x113fdb5c);
    constexpr std::string_view kDigits = "123456789";
    REQUIRE(function(std::as_bytes(std::span(kDigits)), 0) == 0xe3069283);
    REQUIRE(function({}, 0) == 0);
}

TEST_CASE("core crc32c: every length and alignment is as by definition", "[core]") {
    const Crc32cFunction function = each_function();
    Random random(1);
    const auto bytes = random_bytes(random, 5000);
    const std::span all(bytes);
    for (std::size_t length = 0; length < 900; ++length) {
        const auto part = all.subspan(length % 16, length);
        CAPTURE(length);
        REQUIRE(function(part, 0) == reference(part));
    }
    // Around a block, and around a round of the longest lanes.
    for (std::size_t length = 4070; length < 4110; ++length) {
        const auto part = all.subspan(length % 8, length);
        CAPTURE(length);
        REQUIRE(function(part, 7) == reference(part, 7));
    }
}

TEST_CASE("core crc32c: the first function of this processor is used, tables are always there",
          "[core]") {
    const auto functions = crc32c_functions();
    REQUIRE_FALSE(functions.empty());
    if (functions.size() < 3) WARN("this processor has " << functions.size() << " of 3 functions");
    Random random(4);
    const auto bytes = random_bytes(random, 300);
    REQUIRE(crc32c(bytes) == functions.front()(bytes, 0));
    REQUIRE(crc32c(bytes) == functions.back()(bytes, 0));
}

TEST_CASE("core crc32c: random parts of random length", "[core]") {
    const Crc32cFunction function = each_function();
    Random random(2);
    const auto bytes = random_bytes(random, 20000);
    for (int round = 0; round < 100; ++round) {
        const std::size_t length = random.below(bytes.size());
        const std::size_t start = random.below(bytes.size() - length + 1);
        const auto part = std::span(bytes).subspan(start, length);
        const auto seed = static_cast<std::uint32_t>(random.below(1ULL << 32));
        CAPTURE(start, length, seed);
        REQUIRE(function(part, seed) == reference(part, seed));
    }
}

TEST_CASE("core crc32c: goes on where it was left off", "[core]") {
    const Crc32cFunction function = each_function();
    Random random(3);
    const auto bytes = random_bytes(random, 6000);
    const std::span all(bytes);
    const std::uint32_t whole = function(all, 0);
    for (int round = 0; round < 100; ++round) {
        const std::size_t cut = random.below(all.size() + 1);
        CAPTURE(cut);
        REQUIRE(function(all.subspan(cut), function(all.first(cut), 0)) == whole);
    }
}

}  // namespace fopd::core

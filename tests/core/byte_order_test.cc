#include "core/byte_order.h"

#include <array>
#include <cstdint>

#include "tests/catch.h"

namespace fopd {

TEST_CASE("core byte order: little is lowest byte first, at any alignment", "[core]") {
    std::array<std::byte, 9> memory{};

    store_little(memory.data() + 1, std::uint64_t{0x1122334455667788});

    REQUIRE(memory[0] == std::byte{0});
    REQUIRE(memory[1] == std::byte{0x88});
    REQUIRE(memory[8] == std::byte{0x11});
    REQUIRE(load_little<std::uint64_t>(memory.data() + 1) == 0x1122334455667788);
    REQUIRE(load_little<std::uint16_t>(memory.data() + 7) == 0x1122);
}

TEST_CASE("core byte order: big is highest byte first, at any alignment", "[core]") {
    std::array<std::byte, 9> memory{};

    store_big(memory.data() + 1, std::uint64_t{0x1122334455667788});

    REQUIRE(memory[0] == std::byte{0});
    REQUIRE(memory[1] == std::byte{0x11});
    REQUIRE(memory[8] == std::byte{0x88});
    REQUIRE(load_big<std::uint64_t>(memory.data() + 1) == 0x1122334455667788);
    REQUIRE(load_big<std::uint16_t>(memory.data() + 7) == 0x7788);
}

TEST_CASE("core byte order: put and get count from the start of the bytes", "[core]") {
    std::array<std::byte, 6> memory{};

    put_little(memory, 2, std::uint32_t{0x11223344});

    REQUIRE(memory[1] == std::byte{0});
    REQUIRE(memory[2] == std::byte{0x44});
    REQUIRE(get_little<std::uint32_t>(memory, 2) == 0x11223344);
    REQUIRE(get_little<std::uint8_t>(memory, 5) == 0x11);
}

}  // namespace fopd

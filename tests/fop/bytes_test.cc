#include "fop/bytes.h"

#include <array>

#include "tests/catch.h"

namespace fopd::fop {

TEST_CASE("fop bytes: numbers are read back, little endian", "[fop]") {
    std::array<std::byte, 32> memory{};
    ByteWriter writer(memory);
    writer.number(std::uint16_t{0x0102});
    writer.number(std::uint64_t{0x1122334455667788});
    writer.short_text("name");

    ByteReader reader(writer.written());

    REQUIRE(memory[0] == std::byte{0x02});
    REQUIRE(memory[2] == std::byte{0x88});
    REQUIRE(reader.number<std::uint16_t>() == 0x0102);
    REQUIRE(reader.number<std::uint64_t>() == 0x1122334455667788);
    REQUIRE(reader.short_text() == "name");
    REQUIRE(reader.complete());
}

TEST_CASE("fop bytes: truncated input reads as zero and is incomplete", "[fop]") {
    const std::array<std::byte, 3> memory{std::byte{9}, std::byte{1}, std::byte{2}};
    ByteReader reader(memory);

    REQUIRE(reader.short_text().empty());
    REQUIRE(reader.number<std::uint32_t>() == 0);
    REQUIRE_FALSE(reader.ok());
    REQUIRE_FALSE(reader.complete());
}

}  // namespace fopd::fop

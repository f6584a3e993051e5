// Goal: a label is read back only as it was written, and docs/formats/label.md shows what is.
#include "devices/label.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "core/crc32c.h"
#include "tests/catch.h"
#include "tests/devices/label_samples.h"

using namespace fopd;
using namespace fopd::devices;
using fopd::devices::testing::counting_id;
using fopd::devices::testing::example_label;

namespace {

using Bytes = std::array<std::byte, kBlockBytes>;

Bytes written(const Label& label) {
    Bytes bytes;
    bytes.fill(std::byte{0xee});
    write_label(label, bytes);
    return bytes;
}

// With one byte changed and the checksum made right again: what only an enemy or a program writes.
Bytes signed_with(Bytes bytes, std::size_t at, std::uint8_t value) {
    bytes[at] = std::byte{value};
    std::memset(bytes.data() + 12, 0, 4);
    const std::uint32_t sum = core::crc32c(bytes);
    std::memcpy(bytes.data() + 12, &sum, sizeof sum);
    return bytes;
}

LabelFlaw flaw_of(const Bytes& bytes) {
    const auto read = read_label(bytes);
    REQUIRE_FALSE(read.has_value());
    return read.error();
}

std::string shown(std::span<const std::byte> bytes) {
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        const std::string offset = std::to_string(at);
        text += "    " + std::string(4 - offset.size(), ' ') + offset + " ";
        for (const std::byte each : bytes.subspan(at, 16)) {
            const auto value = std::to_integer<unsigned>(each);
            text += ' ';
            text += "0123456789abcdef"[value >> 4];
            text += "0123456789abcdef"[value & 15];
        }
        text += '\n';
    }
    return text;
}

}  // namespace

TEST_CASE("devices label: reads back as it was written", "[devices]") {
    Label label = example_label();
    REQUIRE(read_label(written(label)) == label);

    label.pool = std::string(kPoolNameBytesMax, 'p');
    label.state = LabelState::kRetired;
    label.generation = ~0ULL;
    label.slot = 0xffff;
    REQUIRE(read_label(written(label)) == label);
}

TEST_CASE("devices label: one generation is never written over by the next", "[devices]") {
    Label label = example_label();
    const std::uint64_t offset = label.offset();
    ++label.generation;
    REQUIRE(label.offset() != offset);
    REQUIRE(label.offset() < kLabelCopies * kBlockBytes);
}

TEST_CASE("devices label: every flipped bit is seen", "[devices]") {
    Bytes bytes = written(example_label());
    for (std::size_t bit = 0; bit < kBlockBytes * 8; ++bit) {
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        const auto read = read_label(bytes);
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        // Without its magic it is no label.
        const auto expected = bit < 64 ? LabelFlaw::kNone : LabelFlaw::kDamaged;
        if (read.has_value() || read.error() != expected) FAIL("bit " << bit);
    }
    REQUIRE(read_label(bytes).has_value());
}

TEST_CASE("devices label: zeros and noise are none, a newer version is known as one", "[devices]") {
    Bytes noise{};
    REQUIRE(flaw_of(noise) == LabelFlaw::kNone);
    noise.fill(std::byte{0x5a});
    REQUIRE(flaw_of(noise) == LabelFlaw::kNone);
    const Bytes label = written(example_label());
    REQUIRE(flaw_of(signed_with(label, 8, 2)) == LabelFlaw::kNewer);
    REQUIRE(flaw_of(signed_with(label, 8, 0)) == LabelFlaw::kDamaged);
}

TEST_CASE("devices label: a right checksum does not make wrong fields right", "[devices]") {
    const Bytes label = written(example_label());
    REQUIRE(read_label(signed_with(label, 48, 3)).has_value());
    REQUIRE(flaw_of(signed_with(label, 73, 1)) == LabelFlaw::kDamaged);  // No power of two.
    REQUIRE(read_label(signed_with(label, 78, 3))->state == LabelState::kReleased);
    REQUIRE(flaw_of(signed_with(label, 78, 0)) == LabelFlaw::kDamaged);  // No state.
    REQUIRE(flaw_of(signed_with(label, 78, 4)) == LabelFlaw::kDamaged);
    REQUIRE(flaw_of(signed_with(label, 79, 0)) == LabelFlaw::kDamaged);   // No pool.
    REQUIRE(flaw_of(signed_with(label, 79, 65)) == LabelFlaw::kDamaged);  // Too long.
    REQUIRE(flaw_of(signed_with(label, 79, 255)) == LabelFlaw::kDamaged);
    REQUIRE(flaw_of(signed_with(label, 79, 3)) == LabelFlaw::kDamaged);     // Bytes behind it.
    REQUIRE(flaw_of(signed_with(label, 80, 7)) == LabelFlaw::kDamaged);     // Control character.
    REQUIRE(flaw_of(signed_with(label, 80, 0xff)) == LabelFlaw::kDamaged);  // No UTF-8.
    REQUIRE(flaw_of(signed_with(label, 4095, 1)) == LabelFlaw::kDamaged);
}

TEST_CASE("devices label: the document shows one", "[devices]") {
    std::ifstream file("docs/formats/label.md");
    const std::string document{std::istreambuf_iterator<char>(file), {}};
    const Bytes bytes = written(example_label());
    const std::string expected = shown(std::span(bytes).first(96));
    INFO("the document should show\n" << expected);
    REQUIRE(document.find(expected) != std::string::npos);
}

TEST_CASE("devices label: an id is 32 hexadecimal digits", "[devices]") {
    const DiskId id = counting_id(0xf8);
    REQUIRE(format_id(id) == "f8f9fafbfcfdfeff0001020304050607");
    REQUIRE(parse_id(format_id(id)) == id);
    REQUIRE(parse_id("F8f9fafbfcfdfeff0001020304050607") == id);
    for (const char* const text :
         {"", "f8", "f8f9fafbfcfdfeff00010203040506", "f8f9fafbfcfdfeff000102030405060708",
          "f8f9fafbfcfdfeff000102030405060g", "-8f9fafbfcfdfeff0001020304050607",
          " 8f9fafbfcfdfeff0001020304050607", "0xf9fafbfcfdfeff0001020304050607"}) {
        INFO(text);
        REQUIRE_FALSE(parse_id(text).has_value());
    }
}

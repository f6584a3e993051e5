// Goal: records of a connection open as they were sealed, in order, and in no other way.

#include "fop/record_cipher.h"

#include <algorithm>
#include <string>
#include <vector>

#include "fop/hex.h"
#include "tests/catch.h"

namespace fopd::fop {

namespace {

using Bytes = std::vector<std::byte>;

Key record_key(std::uint8_t first) {
    Key key;
    for (std::size_t i = 0; i < Key::kSizeBytes; ++i) {
        key.writable()[i] = static_cast<std::byte>(first + i);
    }
    return key;
}

Bytes text_bytes(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

const Bytes kLabel = text_bytes("label");

Bytes sealed_record(RecordCipher& cipher, const Bytes& plain) {
    Bytes sealed(plain.size() + RecordCipher::kTagBytes);
    const std::array<std::span<const std::byte>, 1> parts{plain};
    cipher.seal(kLabel, parts, sealed);
    return sealed;
}

bool opens_as(RecordCipher& cipher, const Bytes& sealed, const Bytes& expected) {
    Bytes plain(expected.size());
    return cipher.open(kLabel, sealed, plain) && plain == expected;
}

}  // namespace

TEST_CASE("record cipher: records open in order, also over changes of the key", "[fop]") {
    RecordCipher sealer(record_key(1), RecordCipher::Way::kSeal, 3);
    RecordCipher opener(record_key(1), RecordCipher::Way::kOpen, 3);
    for (std::size_t i = 0; i < 20; ++i) {
        const Bytes plain(i * 37, static_cast<std::byte>(i));
        const Bytes sealed = sealed_record(sealer, plain);
        REQUIRE(opens_as(opener, sealed, plain));
        if (plain.size() > 16) {
            REQUIRE(std::ranges::search(sealed, std::span(plain).first(16)).empty());
        }
    }
}

TEST_CASE("record cipher: the parts of a record are one after the other", "[fop]") {
    RecordCipher sealer(record_key(1), RecordCipher::Way::kSeal);
    RecordCipher opener(record_key(1), RecordCipher::Way::kOpen);
    const Bytes first = text_bytes("one, ");
    const Bytes second = text_bytes("two and three");
    const std::array<std::span<const std::byte>, 3> parts{first, std::span<const std::byte>(),
                                                          second};
    Bytes sealed(first.size() + second.size() + RecordCipher::kTagBytes);
    sealer.seal(kLabel, parts, sealed);
    CHECK(opens_as(opener, sealed, text_bytes("one, two and three")));
}

TEST_CASE("record cipher: what was changed, repeated, left out or moved does not open", "[fop]") {
    RecordCipher sealer(record_key(1), RecordCipher::Way::kSeal);
    RecordCipher opener(record_key(1), RecordCipher::Way::kOpen);
    const Bytes plain = text_bytes("some bytes of somebody");
    const Bytes first = sealed_record(sealer, plain);
    const Bytes second = sealed_record(sealer, plain);
    REQUIRE(first != second);

    SECTION("a bit") {
        const std::size_t at = GENERATE(range(0U, 38U));
        Bytes changed = first;
        changed[at] ^= std::byte{1};
        CHECK_FALSE(opens_as(opener, changed, plain));
    }
    SECTION("the label") {
        Bytes into(plain.size());
        CHECK_FALSE(opener.open(text_bytes("labem"), first, into));
    }
    SECTION("repeated") {
        CHECK(opens_as(opener, first, plain));
        CHECK_FALSE(opens_as(opener, first, plain));
    }
    SECTION("left out") {
        CHECK_FALSE(opens_as(opener, second, plain));
    }
    SECTION("another key") {
        RecordCipher other(record_key(2), RecordCipher::Way::kOpen);
        CHECK_FALSE(opens_as(other, first, plain));
    }
    SECTION("another change of keys") {
        RecordCipher early(record_key(1), RecordCipher::Way::kOpen, 1);
        CHECK(opens_as(early, first, plain));
        CHECK_FALSE(opens_as(early, second, plain));
    }
}

// As docs/formats/tcp.md shows it; record_example_test.py works it out without our code.
TEST_CASE("record cipher: the worked example", "[fop]") {
    RecordCipher sealer(record_key(0), RecordCipher::Way::kSeal, 1);
    const Bytes label{std::byte{5}, std::byte{0}, std::byte{0}, std::byte{0}};
    std::string shown;
    for (int i = 0; i < 2; ++i) {
        const Bytes plain = text_bytes("hello");
        Bytes sealed(plain.size() + RecordCipher::kTagBytes);
        const std::array<std::span<const std::byte>, 1> parts{plain};
        sealer.seal(label, parts, sealed);
        shown += to_hex(sealed) + '\n';
    }
    CHECK(shown ==
          "66d9d9b2da4ab504f1ff1413c791d151ad212e033a\n"
          "f17f9bb00532382b941daa827e2f4e424779b4937d\n");
}

}  // namespace fopd::fop

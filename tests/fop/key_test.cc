#include "fop/key.h"

#include <string>

#include "fop/hash.h"
#include "fop/hex.h"
#include "tests/catch.h"
#include "tests/fop/example_bytes.h"

namespace fopd::fop {

TEST_CASE("fop key: the text of a key is read back", "[fop]") {
    const Key key(counting_bytes<32>(0xe0));
    const std::string text = to_text(key);

    REQUIRE(text == "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    REQUIRE(parse_key(text).value() == key);
    REQUIRE(parse_key(text + "\n").value() == key);
}

TEST_CASE("fop key: every byte has its two digits, in either case", "[fop]") {
    for (int value = 0; value < 256; ++value) {
        std::array<std::byte, 32> bytes{std::byte{1}, static_cast<std::byte>(value)};
        const Key key(bytes);
        std::string text = to_text(key);
        std::array<char, 3> expected{};
        std::snprintf(expected.data(), expected.size(), "%02x", value);

        REQUIRE(text.substr(2, 2) == expected.data());
        for (char& c : text) c = static_cast<char>(std::toupper(c));
        REQUIRE(parse_key(text).value() == key);
    }
}

TEST_CASE("fop key: an invalid key is refused with a reason", "[fop]") {
    const std::string good = to_text(Key(counting_bytes<32>(1)));
    const auto why = [](const std::string& text) {
        const auto parsed = parse_key(text);
        REQUIRE_FALSE(parsed.has_value());
        REQUIRE(parsed.error().code == Errc::kInvalid);
        REQUIRE_THAT(parsed.error().context, ContainsSubstring("64 hexadecimal digits"));
        return std::string(parsed.error().context);
    };

    REQUIRE_THAT(why(""), ContainsSubstring("empty"));
    REQUIRE_THAT(why("\n"), ContainsSubstring("empty"));
    REQUIRE_THAT(why(good.substr(1)), ContainsSubstring("shorter"));
    REQUIRE_THAT(why(good + "0"), ContainsSubstring("longer"));
    REQUIRE_THAT(why(good + "\n\n"), ContainsSubstring("longer"));
    REQUIRE_THAT(why(" " + good), ContainsSubstring("longer"));
    REQUIRE_THAT(why(good.substr(0, 32) + " " + good.substr(33)),
                 ContainsSubstring("is not one of"));
    REQUIRE_THAT(why(std::string(64, '0')), ContainsSubstring("not only zeros"));
}

TEST_CASE("fop key: no character but the digits is taken for one", "[fop]") {
    const std::string good(64, '1');
    for (int c = 0; c < 256; ++c) {
        const bool is_digit = std::isxdigit(c) != 0;
        std::string text = good;
        text[30] = static_cast<char>(c);
        CAPTURE(c);
        REQUIRE(parse_key(text).has_value() == is_digit);
    }
}

// hashlib.blake2b(b"fopd key id", key=bytes(range(32)), digest_size=32).digest()[:8]
TEST_CASE("fop key: its id is the same on every machine", "[fop]") {
    const Key key(counting_bytes<32>(0));

    REQUIRE(to_text(key_id(key)) == "9276c936de492554");
}

TEST_CASE("fop key: one bit makes another key and another id", "[fop]") {
    const Key key(counting_bytes<32>(7));
    for (std::size_t bit = 0; bit < 256; ++bit) {
        Key other = key;
        other.writable()[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
        REQUIRE_FALSE(other == key);
        REQUIRE(key_id(other) != key_id(key));
    }
}

TEST_CASE("fop key: nothing of it is left in memory when it goes", "[fop]") {
    alignas(Key) std::array<std::byte, sizeof(Key)> memory{};
    Key* const key = new (memory.data()) Key(counting_bytes<32>(1));
    REQUIRE(memory[3] == std::byte{4});
    key->~Key();

    const std::array<std::byte, sizeof(Key)> zeros{};
    REQUIRE(same_bytes(memory, zeros));
}

// hashlib.blake2b(b"abc", digest_size=32), and the same with key=bytes(range(32))
TEST_CASE("fop hash: parts count as one text, keyed or not", "[fop]") {
    const std::string a = "ab";
    const std::string b = "c";
    const auto part = [](const std::string& text) { return std::as_bytes(std::span(text)); };

    REQUIRE(to_hex(hash({part(a), part(b)})) ==
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    REQUIRE(to_hex(keyed_hash(Key(counting_bytes<32>(0)), {part(a), part(b)})) ==
            "d63a32d3e44738d7907f964316c241adaba0abfeabc32349677578a15a203f7f");
}

TEST_CASE("fop hash: each label derives a key of its own", "[fop]") {
    const Key from(counting_bytes<32>(9));

    REQUIRE(derive<Key>(from, "one") == derive<Key>(from, "one"));
    REQUIRE_FALSE(derive<Key>(from, "one") == derive<Key>(from, "two"));
    REQUIRE_FALSE(derive<Key>(from, "one") == derive<Key>(Key{}, "one"));
}

}  // namespace fopd::fop

#include "fop/mac.h"

#include <algorithm>
#include <vector>

#include "core/random.h"
#include "fop/hash.h"
#include "fop/hex.h"
#include "fop/siphash.h"
#include "tests/catch.h"
#include "tests/fop/example_bytes.h"

namespace fopd::fop {
namespace {

std::vector<std::byte> random_bytes(core::Random& random, std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    return bytes;
}

}  // namespace

// The published vectors of SipHash-2-4-128: key 00..0f over nothing, and over 00..0e.
TEST_CASE("fop mac: the published vectors", "[fop]") {
    const MacKey key(counting_bytes<16>(0));

    REQUIRE(to_hex(mac(key, {}).bytes) == "a3817f04ba25a8e66df67214c7550293");
    REQUIRE(to_hex(mac(key, counting_bytes<15>(0)).bytes) == "5493e99933b0a8117e08ec0f97cfc3d9");
}

// Made with Python and libsodium:
//     text = bytes((7 * i + 3) % 256 for i in range(1025)); all = hashlib.blake2b(digest_size=32)
//     for n in range(1025): crypto_shorthash_siphashx24(out, text, n, bytes(range(16)));
//     all.update(out)
TEST_CASE("fop mac: the same as libsodium's for every length up to 1024", "[fop]") {
    const MacKey key(counting_bytes<16>(0));
    std::vector<std::byte> text;
    std::vector<std::byte> macs;
    for (unsigned size = 0; size <= 1024; ++size) {
        std::ranges::copy(mac(key, text).bytes, std::back_inserter(macs));
        text.push_back(static_cast<std::byte>((7 * size + 3) % 256));
    }

    REQUIRE(to_hex(hash({macs})) ==
            "0c594590f06371f8a1d9dd133e679797aa76369cbbcb292b78af12e143049a3e");
}

TEST_CASE("fop mac: it does not matter where the bytes are cut in two", "[fop]") {
    core::Random random(1);
    const MacKey key(counting_bytes<16>(100));
    for (std::size_t size = 0; size <= 80; ++size) {
        const auto bytes = random_bytes(random, size);
        const std::span all(bytes);
        for (std::size_t cut = 0; cut <= size; ++cut) {
            CAPTURE(size, cut);
            REQUIRE(mac(key, all.first(cut), all.subspan(cut)) == mac(key, all));
        }
    }
}

TEST_CASE("fop siphash: many parts are the same as one", "[fop]") {
    core::Random random(3);
    const MacKey key(counting_bytes<16>(1));
    for (int i = 0; i < 500; ++i) {
        const auto bytes = random_bytes(random, random.below(300));
        SipHash parts(key);
        for (std::size_t at = 0; at < bytes.size();) {
            const auto size = std::min<std::size_t>(bytes.size() - at, random.below(20));
            parts.add(std::span(bytes).subspan(at, size));
            at += size;
        }
        REQUIRE(Mac128{parts.finish()} == mac(key, bytes));
    }
}

TEST_CASE("fop mac: one bit of the bytes, the key or the MAC is noticed", "[fop]") {
    const MacKey key(counting_bytes<16>(3));
    auto bytes = counting_bytes<67>(0);
    const Mac128 right = mac(key, bytes);

    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        const auto flip = static_cast<std::byte>(1 << (bit % 8));
        bytes[bit / 8] ^= flip;
        REQUIRE_FALSE(mac(key, bytes) == right);
        bytes[bit / 8] ^= flip;
    }
    for (std::size_t bit = 0; bit < 128; ++bit) {
        MacKey other = key;
        other.writable()[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
        REQUIRE_FALSE(mac(other, bytes) == right);
        Mac128 wrong = right;
        wrong.bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
        REQUIRE_FALSE(wrong == right);
    }
}

}  // namespace fopd::fop

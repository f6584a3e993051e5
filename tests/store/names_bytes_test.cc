// Goal: names are written as docs/formats/names.md says, lie in the order that finding the owner
// relies on, and what is no claim is refused.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "core/random.h"
#include "store/name_key.h"
#include "tests/catch.h"
#include "tests/store/text_bytes.h"

using namespace fopd;
using namespace fopd::store;

namespace {

constexpr Fid kFid{.high = 0x0003'0000'0000'0001, .low = 42};

std::string hex(Bytes bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::byte each : bytes) {
        if (!text.empty()) text += ' ';
        text += kDigits[std::to_integer<unsigned>(each) >> 4];
        text += kDigits[std::to_integer<unsigned>(each) & 15];
    }
    return text;
}

using fopd::store::testing::text_of;

// Relative to the root of the project, where tests run.
std::string document() {
    std::ifstream file("docs/formats/names.md");
    REQUIRE(file.good());
    return {std::istreambuf_iterator<char>(file), {}};
}

NameClaim random_claim(core::Random& random) {
    // Few bytes, so that names begin with each other; the highest and the lowest there are.
    constexpr std::string_view kBytes = "\x01 a\xff";
    NameClaim claim{.pool = static_cast<std::uint32_t>(random.below(3) << 7),
                    .version = random.below(2) == 0 ? random.below(4) : random.next() >> 1,
                    .fid = {.high = random.below(3) << 48, .low = random.below(3)}};
    for (auto left = 1 + random.below(random.below(9) == 0 ? 480 : 4); left > 0; --left) {
        claim.name += kBytes[random.below(kBytes.size())];
    }
    return claim;
}

}  // namespace

TEST_CASE("store names bytes: the written bytes match the document's example", "[store]") {
    const NameClaim claim{.pool = 7, .name = "a/b", .version = 5, .fid = kFid};
    const NameKey key = NameKey::claim(NameKind::kClaim, claim);
    const std::string expected =
        "Of four shards it is in number " +
        std::to_string(shard_of({.pool = claim.pool, .name = claim.name}, 4)) +
        ". The key:\n\n    " + hex(key) + "\n";

    INFO("the document should show\n" << expected);
    REQUIRE(document().find(expected) != std::string::npos);
}

TEST_CASE("store names bytes: a claim comes back as it was written", "[store]") {
    core::Random random(1);
    for (unsigned i = 0; i < 2'000; ++i) {
        const NameClaim claim = random_claim(random);
        const NameKey key = NameKey::claim(NameKind::kOutranked, claim);
        const auto read = read_claim(NameKind::kOutranked, {.key = key, .value = {}});
        REQUIRE(read.has_value());
        REQUIRE(read->claim() == claim);
        REQUIRE_FALSE(read_claim(NameKind::kClaim, {.key = key, .value = {}}).has_value());
    }
}

TEST_CASE("store names bytes: keys are ordered by pool, name, falling version and fid", "[store]") {
    core::Random random(2);
    const auto rank = [](const NameClaim& claim) {
        return std::tuple(claim.pool, claim.name, ~claim.version, claim.fid);
    };
    for (unsigned i = 0; i < 5'000; ++i) {
        const NameClaim a = random_claim(random);
        const NameClaim b = random_claim(random);
        const NameKey key_a = NameKey::claim(NameKind::kClaim, a);
        const NameKey key_b = NameKey::claim(NameKind::kClaim, b);
        REQUIRE((text_of(key_a) < text_of(key_b)) == (rank(a) < rank(b)));
    }
}

TEST_CASE("store names bytes: the bounds of a name hold its claims and no others", "[store]") {
    core::Random random(3);
    for (unsigned i = 0; i < 5'000; ++i) {
        const NameClaim a = random_claim(random);
        const NameClaim b = random_claim(random);
        const NameRef name{.pool = a.pool, .name = a.name};
        const auto key = text_of(NameKey::claim(NameKind::kClaim, b));
        const bool is_same = a.pool == b.pool && a.name == b.name;
        const bool begins_so = a.pool == b.pool && b.name.starts_with(a.name);

        REQUIRE((key >= text_of(NameKey::first_claim(name)) &&
                 key <= text_of(NameKey::last_claim(name))) == is_same);
        REQUIRE((key >= text_of(NameKey::first_with_prefix(NameKind::kClaim, name)) &&
                 key <= text_of(NameKey::last_with_prefix(NameKind::kClaim, name))) == begins_so);
        REQUIRE((key >= text_of(NameKey::behind_name(name))) ==
                (std::tie(b.pool, b.name) > std::tie(a.pool, a.name)));
    }
}

TEST_CASE("store names bytes: an invalid claim is refused", "[store]") {
    const NameClaim claim{.pool = 7, .name = "a/b", .version = 5, .fid = kFid};
    const auto good = text_of(NameKey::claim(NameKind::kClaim, claim));
    const auto is_read = [](std::string_view key, std::string_view value) {
        return read_claim(NameKind::kClaim, {.key = std::as_bytes(std::span(key)),
                                             .value = std::as_bytes(std::span(value))})
            .has_value();
    };
    REQUIRE(is_read(good, ""));

    REQUIRE_FALSE(is_read(good, "x"));
    for (std::size_t size = 0; size < good.size(); ++size) {
        // What is cut off from a long name's end may leave another's claim, not from this one's.
        REQUIRE_FALSE(is_read(good.substr(0, size), ""));
    }
    auto changed = good;
    changed[8] = '\1';  // The zero byte.
    REQUIRE_FALSE(is_read(changed, ""));
    changed = good;
    changed[9] = '\0';  // A version that is too high.
    REQUIRE_FALSE(is_read(changed, ""));
    changed = good;
    changed[6] = '\0';  // A name with a zero byte.
    REQUIRE_FALSE(is_read(changed, ""));
}

TEST_CASE("store names bytes: names of 1 to 480 bytes without a zero byte are names", "[store]") {
    REQUIRE(check_name("a").has_value());
    REQUIRE(check_name(std::string(480, 'n')).has_value());

    REQUIRE_FALSE(check_name("").has_value());
    REQUIRE_FALSE(check_name(std::string(481, 'n')).has_value());
    REQUIRE_FALSE(check_name(std::string_view("a\0b", 3)).has_value());
}

TEST_CASE("store names bytes: similar names are divided evenly", "[store]") {
    constexpr std::uint32_t kParts = 4;
    constexpr unsigned kNames = 40'000;
    std::array<unsigned, kParts> counts{};
    for (unsigned i = 0; i < kNames; ++i) {
        const std::string name = "run/" + std::to_string(i);
        ++counts[shard_of({.pool = 1, .name = name}, kParts)];
    }
    for (const unsigned count : counts) {
        REQUIRE(count > kNames / kParts * 95 / 100);
        REQUIRE(count < kNames / kParts * 105 / 100);
    }
}

TEST_CASE("store names bytes: several names have one order", "[store]") {
    core::Random random(4);
    std::vector<NameClaim> claims(50);
    for (NameClaim& claim : claims) claim = random_claim(random);
    for (const NameClaim& a : claims) {
        for (const NameClaim& b : claims) {
            const NameRef name_a{.pool = a.pool, .name = a.name};
            const NameRef name_b{.pool = b.pool, .name = b.name};
            const bool is_same = a.pool == b.pool && a.name == b.name;
            REQUIRE((reserved_before(name_a, name_b) != reserved_before(name_b, name_a)) !=
                    is_same);
        }
    }
}

TEST_CASE("store names bytes: heads and numbers come back, and nothing else", "[store]") {
    ValueBuffer buffer;
    const NameHead head{.shard = 3, .shard_count = 4};
    REQUIRE(read_name_head(write_name_head(buffer, head)).value() == head);
    REQUIRE(read_known_seq(write_known_seq(buffer, 77)).value() == 77);

    REQUIRE_FALSE(read_known_seq(buffer.bytes().first(7)).has_value());
    REQUIRE_FALSE(read_name_head(buffer.bytes()).has_value());
    REQUIRE_FALSE(read_name_head(write_name_head(buffer, {.shard = 4, .shard_count = 4})));
}

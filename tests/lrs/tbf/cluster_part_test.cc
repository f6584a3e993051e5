// Goal: contributions to an epoch are combined to the same bytes in any order and grouping, with
// exact sums.
// Method: drawn contributions, combined by drawn trees, and in the plainest way.

#include "lrs/tbf/cluster_part.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/random.h"
#include "lrs/classes/described_request.h"
#include "lrs/tbf/cluster_shares.h"
#include "lrs/tbf/rule_set.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

using Bytes = std::array<std::byte, sizeof(ClusterPart)>;

Bytes bytes_of(const ClusterPart& part) {
    Bytes bytes{};
    part.write(bytes);
    return bytes;
}

// The demands in the order of the part, cut to size, as a node writes them.
void put(ClusterPart& part, std::vector<ClusterDemand> demands) {
    std::ranges::sort(demands, {},
                      [&](const ClusterDemand& each) { return part.index_of(each.id); });
    part.count = static_cast<std::uint32_t>(std::min(demands.size(), ClusterPart::kDemandsMax));
    std::copy_n(demands.begin(), part.count, part.demands.begin());
}

struct Drawn {
    std::vector<ClusterPart> parts;
    // Of the contributions that know the newest result.
    std::map<std::uint64_t, ClusterDemand> sums;
    std::uint64_t nodes = 0;
    eh::EpochNumber newest = 0;
};

Drawn draw(core::Random& random) {
    Drawn drawn;
    const std::size_t count = 1 + random.below(20);
    const std::uint64_t ids = 1 + random.below(200);
    const std::uint64_t first_id = random.next();
    drawn.newest = static_cast<eh::EpochNumber>(random.below(3));
    for (std::size_t i = 0; i < count; ++i) {
        ClusterPart part;
        part.basis = i == 0 || random.below(4) != 0 ? drawn.newest
                                                    : static_cast<eh::EpochNumber>(random.below(3));
        part.basis = std::min(part.basis, drawn.newest);
        part.first_id = part.basis == drawn.newest ? first_id : 7;
        part.nodes = random.below(1U << 21);
        part.key_low = part.key_high = static_cast<std::uint32_t>(random.below(2));
        part.moved = static_cast<std::uint32_t>(random.next());
        std::vector<ClusterDemand> demands;
        for (std::uint64_t id = 0; id < ids; ++id) {
            if (random.below(2) == 0) continue;
            const auto terms = static_cast<std::uint32_t>(random.below(3));
            demands.push_back({.id = id * 0x0123'4567'89ab'cdef,
                               .demand = random.below(kDemandMax),
                               .terms_low = terms,
                               .terms_high = terms});
        }
        put(part, demands);
        drawn.nodes += part.nodes;
        drawn.parts.push_back(part);
        if (part.basis != drawn.newest) continue;
        for (const ClusterDemand& each : demands) {
            const auto [sum, is_new] = drawn.sums.try_emplace(each.id, each);
            if (is_new) continue;
            sum->second.demand += each.demand;
            sum->second.terms_low = std::min(sum->second.terms_low, each.terms_low);
            sum->second.terms_high = std::max(sum->second.terms_high, each.terms_high);
        }
    }
    return drawn;
}

Bytes combined_by_drawn_tree(const std::vector<ClusterPart>& parts, core::Random& random) {
    std::vector<Bytes> left;
    for (const ClusterPart& part : parts) left.push_back(bytes_of(part));
    while (left.size() > 1) {
        std::swap(left[random.below(left.size())], left.back());
        const Bytes one = left.back();
        left.pop_back();
        Bytes& other = left[random.below(left.size())];
        if (random.below(2) == 0) {
            kTbfPart.combine(other, one, other);
        } else {
            kTbfPart.combine(other, other, one);
        }
    }
    return left.front();
}

}  // namespace

TEST_CASE("lrs cluster part: any tree of combinations gives the same bytes and exact sums",
          "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        const Drawn drawn = draw(random);
        const Bytes first = combined_by_drawn_tree(drawn.parts, random);
        for (int i = 0; i < 5; ++i) REQUIRE(combined_by_drawn_tree(drawn.parts, random) == first);

        const ClusterPart result = ClusterPart::read(first);
        CHECK(result.basis == drawn.newest);
        CHECK(result.nodes == drawn.nodes);
        ClusterPart expected = result;
        expected.demands = {};
        std::vector<ClusterDemand> sums;
        for (const auto& [id, sum] : drawn.sums) sums.push_back(sum);
        put(expected, sums);
        CHECK(result == expected);
        for (const auto& [id, sum] : drawn.sums) {
            const ClusterDemand* const found = result.find(id);
            CHECK((found != nullptr) == (expected.find(id) != nullptr));
            CHECK(result.covers(id) == (found != nullptr || !result.is_full()));
        }
    }
}

TEST_CASE("lrs cluster part: sums stop at the largest number", "[lrs]") {
    ClusterPart part{.nodes = ~std::uint64_t{0}, .moved = ~std::uint32_t{0}};
    put(part, {{.id = 5, .demand = ~std::uint64_t{0}}});
    const ClusterPart twice = ClusterPart::combined(part, part);
    CHECK(twice == part);
}

TEST_CASE("lrs cluster part: swapped twice it is the same, also with a count that is too large",
          "[lrs]") {
    core::Random random(3);
    ClusterPart part = draw(random).parts.front();
    part.count = 0x01020304;
    Bytes bytes = bytes_of(part);
    kTbfPart.swap_bytes(bytes);
    CHECK(ClusterPart::read(bytes).count == 0x04030201);
    CHECK(bytes != bytes_of(part));
    kTbfPart.swap_bytes(bytes);
    CHECK(bytes == bytes_of(part));
}

TEST_CASE("lrs cluster part: bytes that nobody wrote do no harm", "[lrs]") {
    core::Random random(4);
    for (int i = 0; i < 2000; ++i) {
        Bytes one{};
        Bytes other{};
        for (std::byte& each : one) each = static_cast<std::byte>(random.below(256));
        for (std::byte& each : other) each = static_cast<std::byte>(random.below(256));
        // Equal bases, so that the lists are merged.
        std::copy_n(one.begin(), 16, other.begin());
        kTbfPart.combine(one, one, other);
        CHECK(ClusterPart::read(one).all().size() <= ClusterPart::kDemandsMax);
    }
    CHECK(ClusterPart::read(std::array<std::byte, 3>{}) == ClusterPart{});
}

TEST_CASE("lrs cluster part: the bytes are those of docs/formats/epoch.md", "[lrs]") {
    RuleRevisions revisions(1);
    const std::vector<std::string> texts{"jobs job=* rate=1000/s scope=cluster"};
    REQUIRE(revisions.load(texts, Instant{}).has_value());
    const Rule& rule = revisions.current()->rules().front();
    const auto request = DescribedRequest::parse("job=dd.0");
    REQUIRE(request.has_value());
    const auto node = std::make_shared<ClusterNode>();
    node->key = {.first = 1, .second = 2};
    ClusterShares shares(node);
    std::vector<ClusterDemand> demands{
        {.id = rule.cluster_class((*request)->attributes(), node->key).low,
         .demand = kWholeDemand / 2,
         .terms_low = rule.terms,
         .terms_high = rule.terms}};
    Bytes bytes{};
    shares.write(bytes, demands, kWholeDemand / 2);
    if (std::endian::native == std::endian::big) swap_cluster_part(bytes);
    std::string shown;
    for (std::size_t i = 0; i < 64; ++i) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        const auto byte = std::to_integer<unsigned>(bytes[i]);
        shown += {kDigits[byte >> 4], kDigits[byte & 15], i % 8 == 7 ? '\n' : ' '};
    }
    CHECK(shown ==
          "00 00 00 00 00 00 00 00\n"
          "00 00 00 00 00 00 00 00\n"
          "00 00 10 00 00 00 00 00\n"
          "77 21 ea 14 77 21 ea 14\n"
          "01 00 00 00 00 00 80 00\n"
          "2d af a8 1a 3f f3 94 11\n"
          "00 00 80 00 00 00 00 00\n"
          "6b fc 78 c9 6b fc 78 c9\n");
    CHECK(std::ranges::all_of(std::span(bytes).subspan(64),
                              [](std::byte each) { return each == std::byte{}; }));
    CHECK(kTbfPart.size_bytes == 1480);
}

// Goal: what nodes contribute can be combined in any order and grouping, with the same bytes, and
// with exact numbers although lists are cut.
// Method: drawn contributions of many nodes, more groups than a list has room for, combined in
// drawn trees; a model that adds up everything and cuts once.

#include "lrs/epoch_groups/group_demand.h"

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(const EpochDemand& demand) {
    Bytes bytes(EpochDemand::kBytes);
    demand.write(bytes);
    return bytes;
}

struct Contribution {
    Tag last;
    std::map<GroupId, std::uint64_t> requests;

    EpochDemand demand() const {
        std::vector<GroupDemand> all;
        for (const auto& [group, count] : requests)
            all.push_back({.tag = next_tag(last, group, weight_of(group)), .requests = count});
        EpochDemand made;
        made.last = last;
        made.set_groups(all);
        return made;
    }
    static std::uint32_t weight_of(GroupId group) {
        return static_cast<std::uint32_t>(1 + group % 5);
    }
};

// Of those with the newest turn: all their groups, then the first ones.
EpochDemand model(const std::vector<Contribution>& all) {
    Tag newest;
    for (const Contribution& each : all) newest = std::max(newest, each.last);
    std::map<Tag, std::uint64_t> sums;
    for (const Contribution& each : all) {
        if (each.last != newest) continue;
        for (const auto& [group, count] : each.requests)
            sums[next_tag(newest, group, Contribution::weight_of(group))] += count;
    }
    EpochDemand demand;
    demand.last = newest;
    for (const auto& [tag, count] : sums) {
        if (demand.count == EpochDemand::kGroupsMax) break;
        demand.groups[demand.count++] = {.tag = tag, .requests = count};
    }
    return demand;
}

std::vector<Contribution> drawn(core::Random& random) {
    const Tag last{.at = random.below(5 * kRoundLength), .group = random.below(1000)};
    std::vector<Contribution> all(1 + random.below(40));
    const std::uint64_t groups = 1 + random.below(200);
    for (Contribution& each : all) {
        each.last = last;
        // Some have missed one epoch or several, some have just begun.
        if (random.below(10) == 0) each.last.at = random.below(last.at + 1);
        if (random.below(10) == 0) each.last = {};
        for (std::uint64_t left = random.below(groups + 1); left > 0; --left)
            each.requests[random.below(groups)] += 1 + random.below(50);
    }
    return all;
}

}  // namespace

TEST_CASE("lrs demand: any tree of combinations has the same bytes, and the first groups of all",
          "[lrs]") {
    core::Random random(11);
    std::size_t cut = 0;
    for (int round = 0; round < 300; ++round) {
        const std::vector<Contribution> all = drawn(random);
        const EpochDemand wanted = model(all);
        if (wanted.count == EpochDemand::kGroupsMax) ++cut;
        for (int tree = 0; tree < 4; ++tree) {
            std::vector<Bytes> parts;
            for (const Contribution& each : all) parts.push_back(bytes_of(each.demand()));
            while (parts.size() > 1) {
                std::swap(parts[random.below(parts.size())], parts.back());
                const Bytes one = parts.back();
                parts.pop_back();
                Bytes& other = parts[random.below(parts.size())];
                // The result may be in the same memory as the first.
                combine_group_parts(other, other, one);
            }
            CHECK(parts.front() == bytes_of(wanted));
        }
    }
    CHECK(cut > 100);
}

TEST_CASE("lrs demand: the group whose turn is next is that of all nodes together", "[lrs]") {
    const Contribution one{.last = {.at = 7, .group = 3}, .requests = {{2, 1}, {9, 4}}};
    const Contribution other{.last = {.at = 7, .group = 3}, .requests = {{5, 2}, {9, 3}}};
    const EpochDemand both = EpochDemand::combine(one.demand(), other.demand());

    REQUIRE(both.next().has_value());
    const Tag first =
        std::min({next_tag(both.last, 2, 3), next_tag(both.last, 5, 1), next_tag(both.last, 9, 5)});
    CHECK(*both.next() == first);
    CHECK(both.requests_of(9) == 7);
    CHECK(both.requests_of(2) == 1);
    CHECK_FALSE(both.requests_of(4).has_value());
    CHECK_FALSE(EpochDemand{}.next().has_value());
}

TEST_CASE("lrs demand: sums that do not fit are the largest that do, in any order", "[lrs]") {
    constexpr std::uint64_t kMost = ~std::uint64_t{0};
    EpochDemand many;
    std::vector<GroupDemand> groups{{.tag = {.at = 1, .group = 1}, .requests = kMost - 1}};
    many.set_groups(groups);
    EpochDemand few;
    groups = {{.tag = {.at = 1, .group = 1}, .requests = 2}};
    few.set_groups(groups);

    const EpochDemand left = EpochDemand::combine(EpochDemand::combine(many, few), few);
    const EpochDemand right = EpochDemand::combine(many, EpochDemand::combine(few, few));
    CHECK(left == right);
    CHECK(left.requests_of(1) == kMost);
}

TEST_CASE("lrs demand: in the other byte order it is the same when swapped, and back", "[lrs]") {
    core::Random random(12);
    const Bytes own = bytes_of(drawn(random).front().demand());
    Bytes foreign = own;
    swap_group_part(foreign);
    // The words as the other host has them.
    for (std::size_t at = 0; at < own.size(); at += 8) {
        for (std::size_t i = 0; i < 8; ++i) REQUIRE(foreign[at + i] == own[at + 7 - i]);
    }
    swap_group_part(foreign);
    CHECK(foreign == own);
}

TEST_CASE("lrs demand: the bytes are those of docs/formats/epoch.md", "[lrs]") {
    EpochDemand demand;
    std::vector<GroupDemand> groups{{.tag = next_tag({}, group_id_of("zone-a"), 1), .requests = 2}};
    demand.set_groups(groups);
    Bytes bytes = bytes_of(demand);
    if (std::endian::native == std::endian::big) swap_group_part(bytes);
    Bytes wanted(EpochDemand::kBytes);
    wanted[16] = std::byte{1};
    const Bytes id{std::byte{0xbf}, std::byte{0x66}, std::byte{0xf2}, std::byte{0x7d},
                   std::byte{0xd0}, std::byte{0x98}, std::byte{0x4d}, std::byte{0x37}};
    std::ranges::copy(id, wanted.begin() + 32);
    wanted[40] = std::byte{2};
    CHECK(bytes == wanted);
    CHECK(kGroupsPart.size_bytes == 1560);
}

TEST_CASE("lrs demand: whatever bytes there are, reading them is bounded", "[lrs]") {
    core::Random random(13);
    for (int round = 0; round < 1000; ++round) {
        Bytes bytes(EpochDemand::kBytes);
        for (std::byte& each : bytes) each = static_cast<std::byte>(random.below(256));
        const EpochDemand read = EpochDemand::read(bytes);
        CHECK(read.count <= EpochDemand::kGroupsMax);
        Bytes other(EpochDemand::kBytes);
        combine_group_parts(other, other, bytes);
        CHECK(EpochDemand::read(other).count <= EpochDemand::kGroupsMax);
    }
    // The parts of all policies have to fit into one frame.
    CHECK(kGroupsPart.size_bytes <= 2048);
}

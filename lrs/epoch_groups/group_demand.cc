#include "lrs/epoch_groups/group_demand.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

class WordReader {
public:
    explicit WordReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    std::uint64_t next() {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes_.data(), kWordBytes);
        bytes_ = bytes_.subspan(kWordBytes);
        return word;
    }

private:
    std::span<const std::byte> bytes_;
};

class WordWriter {
public:
    explicit WordWriter(std::span<std::byte> bytes) : bytes_(bytes) {}

    void add(std::uint64_t word) {
        std::memcpy(bytes_.data(), &word, kWordBytes);
        bytes_ = bytes_.subspan(kWordBytes);
    }

private:
    std::span<std::byte> bytes_;
};

// Remains associative where it ends.
std::uint64_t sum(std::uint64_t one, std::uint64_t other) {
    std::uint64_t total = 0;
    return __builtin_add_overflow(one, other, &total) ? std::numeric_limits<std::uint64_t>::max()
                                                      : total;
}

// Appends `next`, which is not before the others, unless there is no room.
void append(EpochDemand& to, const GroupDemand& next) {
    if (to.count > 0 && to.groups[to.count - 1].tag == next.tag) {
        std::uint64_t& requests = to.groups[to.count - 1].requests;
        requests = sum(requests, next.requests);
    } else if (to.count < EpochDemand::kGroupsMax) {
        to.groups[to.count++] = next;
    }
}

}  // namespace

void EpochDemand::set_groups(std::span<GroupDemand> all) {
    const std::size_t kept = std::min(all.size(), kGroupsMax);
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(kept), {},
                             &GroupDemand::tag);
    std::ranges::sort(all.first(kept), {}, &GroupDemand::tag);
    groups = {};
    count = 0;
    for (const GroupDemand& each : all.first(kept)) append(*this, each);
}

EpochDemand EpochDemand::combine(const EpochDemand& one, const EpochDemand& other) {
    if (one.last != other.last) return one.last > other.last ? one : other;
    EpochDemand both;
    both.last = one.last;
    std::size_t in_one = 0;
    std::size_t in_other = 0;
    while (in_one < one.count || in_other < other.count) {
        const bool takes_one =
            in_other == other.count ||
            (in_one < one.count && one.groups[in_one].tag < other.groups[in_other].tag);
        append(both, takes_one ? one.groups[in_one++] : other.groups[in_other++]);
    }
    return both;
}

std::optional<Tag> EpochDemand::next() const {
    if (count == 0) return std::nullopt;
    return groups.front().tag;
}

std::optional<std::uint64_t> EpochDemand::requests_of(GroupId group) const {
    const auto named = std::span(groups).first(count);
    const auto found =
        std::ranges::find(named, group, [](const GroupDemand& each) { return each.tag.group; });
    if (found == named.end()) return std::nullopt;
    return found->requests;
}

EpochDemand EpochDemand::read(std::span<const std::byte> bytes) {
    ENSURE(bytes.size() == kBytes);
    WordReader words(bytes);
    EpochDemand demand;
    demand.last.at = words.next();
    demand.last.group = words.next();
    demand.count = std::min<std::uint64_t>(words.next(), kGroupsMax);
    for (std::size_t i = 0; i < demand.count; ++i) {
        GroupDemand& each = demand.groups[i];
        each.tag.at = words.next();
        each.tag.group = words.next();
        each.requests = words.next();
    }
    return demand;
}

void EpochDemand::write(std::span<std::byte> bytes) const {
    ENSURE(bytes.size() == kBytes);
    WordWriter words(bytes);
    words.add(last.at);
    words.add(last.group);
    words.add(count);
    for (const GroupDemand& each : groups) {
        words.add(each.tag.at);
        words.add(each.tag.group);
        words.add(each.requests);
    }
}

void combine_group_parts(std::span<std::byte> into, std::span<const std::byte> one,
                         std::span<const std::byte> other) {
    EpochDemand::combine(EpochDemand::read(one), EpochDemand::read(other)).write(into);
}

void swap_group_part(std::span<std::byte> part) {
    for (std::size_t at = 0; at + kWordBytes <= part.size(); at += kWordBytes) {
        const auto bytes = part.subspan(at, kWordBytes);
        const std::uint64_t word = std::byteswap(WordReader(bytes).next());
        WordWriter(bytes).add(word);
    }
}

}  // namespace fopd::lrs

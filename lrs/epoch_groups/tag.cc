#include "lrs/epoch_groups/tag.h"

#include "core/ensure.h"
#include "lrs/classes/keyed_hash.h"

namespace fopd::lrs {

namespace {

// The key is not a secret, because all nodes must have the same one. A client that finds names with
// equal ids gains nothing: the groups of these names share the turns of one group.
constexpr HashKey kGroupKey{.first = 0x6c72732065706f63, .second = 0x682067726f757073};

}  // namespace

// KeyedHash takes words of a text in the host's byte order; nodes may have different ones.
GroupId group_id_of(std::string_view name) {
    KeyedHash hash(kGroupKey);
    hash.add(std::uint64_t{name.size()});
    std::uint64_t word = 0;
    unsigned shift = 0;
    for (const char byte : name) {
        word |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
        shift += 8;
        if (shift < 64) continue;
        hash.add(word);
        word = 0;
        shift = 0;
    }
    if (shift > 0) hash.add(word);
    return hash.result().high;
}

// The tags of a round are at the multiples of kRoundLength / weight, rounded down.
Tag next_tag(const Tag& last, GroupId group, std::uint32_t weight) {
    ENSURE(weight >= 1);
    ENSURE(weight <= kRoundLength);
    const std::uint64_t round = last.at - last.at % kRoundLength;
    const std::uint64_t within = last.at % kRoundLength;
    // The last multiple that is not after `within`.
    const std::uint64_t number = ((within + 1) * weight - 1) / kRoundLength;
    const std::uint64_t at = round + number * kRoundLength / weight;
    if (at == last.at && group > last.group) return {.at = at, .group = group};
    return {.at = round + (number + 1) * kRoundLength / weight, .group = group};
}

}  // namespace fopd::lrs

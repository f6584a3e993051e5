#include "lrs/tbf/cluster_part.h"

#include <bit>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

namespace fopd::lrs {

namespace {

static_assert(std::is_trivially_copyable_v<ClusterPart>);
static_assert(std::has_unique_object_representations_v<ClusterPart>);
static_assert(sizeof(ClusterDemand) == 24);
static_assert(sizeof(ClusterPart) == 40 + 24 * ClusterPart::kDemandsMax);

// At most the highest number.
template <typename Number>
Number sum_of(Number one, Number other) {
    const Number room = std::numeric_limits<Number>::max() - one;
    return one + std::min(other, room);
}

ClusterDemand sum_of(const ClusterDemand& one, const ClusterDemand& other) {
    return {.id = one.id,
            .demand = sum_of(one.demand, other.demand),
            .terms_low = std::min(one.terms_low, other.terms_low),
            .terms_high = std::max(one.terms_high, other.terms_high)};
}

// The first of both in their common order. What one of them has left out had kDemandsMax before it
// there, and so has it here.
void merge(const ClusterPart& one, const ClusterPart& other, ClusterPart& into) {
    const auto ones = one.all();
    const auto others = other.all();
    std::size_t i = 0;
    std::size_t j = 0;
    while (into.count < ClusterPart::kDemandsMax && (i < ones.size() || j < others.size())) {
        ClusterDemand& next = into.demands[into.count++];
        if (i == ones.size()) {
            next = others[j++];
        } else if (j == others.size()) {
            next = ones[i++];
        } else if (ones[i].id == others[j].id) {
            next = sum_of(ones[i++], others[j++]);
        } else {
            next = one.index_of(ones[i].id) < one.index_of(others[j].id) ? ones[i++] : others[j++];
        }
    }
}

}  // namespace

void combine_cluster_parts(std::span<std::byte> into, std::span<const std::byte> one,
                           std::span<const std::byte> other) {
    ClusterPart::combined(ClusterPart::read(one), ClusterPart::read(other)).write(into);
}

void swap_cluster_part(std::span<std::byte> data) {
    ClusterPart part = ClusterPart::read(data);
    part.basis = std::byteswap(part.basis);
    part.first_id = std::byteswap(part.first_id);
    part.nodes = std::byteswap(part.nodes);
    part.key_low = std::byteswap(part.key_low);
    part.key_high = std::byteswap(part.key_high);
    part.count = std::byteswap(part.count);
    part.moved = std::byteswap(part.moved);
    for (ClusterDemand& each : part.demands) {
        each.id = std::byteswap(each.id);
        each.demand = std::byteswap(each.demand);
        each.terms_low = std::byteswap(each.terms_low);
        each.terms_high = std::byteswap(each.terms_high);
    }
    part.write(data);
}

ClusterPart ClusterPart::read(std::span<const std::byte> bytes) {
    ClusterPart part;
    if (bytes.size() == sizeof part) std::memcpy(&part, bytes.data(), sizeof part);
    return part;
}

void ClusterPart::write(std::span<std::byte> bytes) const {
    if (bytes.size() == sizeof *this) std::memcpy(bytes.data(), this, sizeof *this);
}

const ClusterDemand* ClusterPart::find(std::uint64_t id) const {
    const auto index = [this](const ClusterDemand& each) { return index_of(each.id); };
    const auto found = std::ranges::lower_bound(all(), index_of(id), {}, index);
    return found == all().end() || found->id != id ? nullptr : &*found;
}

ClusterPart ClusterPart::combined(const ClusterPart& one, const ClusterPart& other) {
    const auto age = [](const ClusterPart& of) { return std::tuple(of.basis, of.first_id); };
    const bool is_one = age(one) >= age(other);
    const bool is_other = age(other) >= age(one);
    const ClusterPart& newest = is_one ? one : other;
    ClusterPart result{.basis = newest.basis,
                       .first_id = newest.first_id,
                       .nodes = sum_of(one.nodes, other.nodes),
                       .key_low = std::min(one.key_low, other.key_low),
                       .key_high = std::max(one.key_high, other.key_high),
                       .moved = sum_of(one.moved, other.moved)};
    merge(is_one ? one : ClusterPart{.first_id = newest.first_id},
          is_other ? other : ClusterPart{.first_id = newest.first_id}, result);
    return result;
}

}  // namespace fopd::lrs

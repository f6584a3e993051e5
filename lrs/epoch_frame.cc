#include "lrs/epoch_frame.h"

#include <array>
#include <bit>

#include "core/ensure.h"
#include "core/random.h"
#include "lrs/epoch_groups/group_demand.h"
#include "lrs/tbf/cluster_part.h"

namespace fopd::lrs {

namespace {

constexpr std::array kEpochParts{kGroupsPart, kTbfPart};
static_assert(std::ranges::is_sorted(kEpochParts, {}, &EpochPart::name));

std::uint32_t count_at(std::span<const std::byte> frame, std::size_t at) {
    std::uint32_t count = 0;
    std::memcpy(&count, frame.subspan(at, sizeof count).data(), sizeof count);
    return count;
}

void set_count(std::span<std::byte> frame, std::size_t at, std::uint32_t count) {
    std::memcpy(frame.subspan(at, sizeof count).data(), &count, sizeof count);
}

void combine_all(std::span<std::byte> into, std::span<const std::byte> one,
                 std::span<const std::byte> other) {
    EpochFrame(epoch_parts()).combine(into, one, other);
}

void swap_all(std::span<std::byte> frame) {
    EpochFrame(epoch_parts()).swap_bytes(frame);
}

}  // namespace

std::span<const EpochPart> epoch_parts() {
    return kEpochParts;
}

std::uint64_t epoch_parts_hash() {
    std::uint64_t hash = 0;
    for (const EpochPart& part : epoch_parts()) {
        for (const char each : part.name) hash = core::mix(hash, static_cast<unsigned char>(each));
        hash = core::mix(hash, part.size_bytes);
    }
    return hash;
}

eh::EpochRules epoch_rules(Duration timeout) {
    // A frame is combined as a whole or not at all.
    const std::size_t size_bytes = EpochFrame(epoch_parts()).size_bytes();
    return {.timeout = timeout,
            .combine = combine_all,
            .granule = std::max<std::size_t>(size_bytes, 1),
            .swap_bytes = swap_all};
}

std::size_t EpochFrame::size_bytes() const {
    std::size_t total = 0;
    for (const EpochPart& part : parts_) total += kCountBytes + part.size_bytes;
    ENSURE(total <= eh::kEpochBytesMax);
    return total;
}

std::span<std::byte> EpochFrame::fill(std::span<std::byte> frame, std::string_view name) const {
    ENSURE(frame.size() == size_bytes());
    std::size_t at = 0;
    for (const EpochPart& part : parts_) {
        if (part.name == name) {
            set_count(frame, at, 1);
            return frame.subspan(at + kCountBytes, part.size_bytes);
        }
        at += kCountBytes + part.size_bytes;
    }
    return {};
}

EpochPartData EpochFrame::part(std::span<const std::byte> frame, std::string_view name) const {
    if (frame.size() != size_bytes()) return {};
    std::size_t at = 0;
    for (const EpochPart& part : parts_) {
        if (part.name == name) {
            return {.filled = count_at(frame, at),
                    .bytes = frame.subspan(at + kCountBytes, part.size_bytes)};
        }
        at += kCountBytes + part.size_bytes;
    }
    return {};
}

bool EpochFrame::is_filled(std::span<const std::byte> frame) const {
    return std::ranges::any_of(
        parts_, [&](const EpochPart& each) { return part(frame, each.name).filled > 0; });
}

// A part that nobody has filled changes nothing.
void EpochFrame::combine(std::span<std::byte> into, std::span<const std::byte> one,
                         std::span<const std::byte> other) const {
    if (into.size() != size_bytes()) return;
    std::size_t at = 0;
    for (const EpochPart& part : parts_) {
        const std::uint32_t in_one = count_at(one, at);
        const std::uint32_t in_other = count_at(other, at);
        const std::size_t begin = at + kCountBytes;
        const auto result = into.subspan(begin, part.size_bytes);
        if (in_one > 0 && in_other > 0) {
            part.combine(result, one.subspan(begin, part.size_bytes),
                         other.subspan(begin, part.size_bytes));
        } else {
            std::ranges::copy((in_other > 0 ? other : one).subspan(begin, part.size_bytes),
                              result.begin());
        }
        set_count(into, at, in_one + in_other);
        at = begin + part.size_bytes;
    }
}

void EpochFrame::swap_bytes(std::span<std::byte> frame) const {
    if (frame.size() != size_bytes()) return;
    std::size_t at = 0;
    for (const EpochPart& part : parts_) {
        set_count(frame, at, std::byteswap(count_at(frame, at)));
        if (part.swap_bytes != nullptr)
            part.swap_bytes(frame.subspan(at + kCountBytes, part.size_bytes));
        at += kCountBytes + part.size_bytes;
    }
}

}  // namespace fopd::lrs

#include "lrs/mclock/reserved_classes.h"

#include <algorithm>
#include <bit>

#include "core/ensure.h"

namespace fopd::lrs {

ReservedClasses::ReservedClasses(std::size_t class_count)
    : mask_(std::bit_ceil(class_count) - 1), classes_(std::make_unique<ClassMeters[]>(mask_ + 1)) {
    ENSURE(class_count >= 1);
}

ReservedClasses::Meters* ReservedClasses::find_or_add(const ClassHash& hash) {
    const std::uint64_t wanted = std::max<std::uint64_t>(hash.high, 1);
    for (std::size_t i = 0; i <= mask_; ++i) {
        ClassMeters& meters = classes_[(hash.low + i) & mask_];
        std::uint64_t seen = meters.hash.load(std::memory_order_relaxed);
        if (seen == wanted) return &meters;
        if (seen != 0) continue;
        if (meters.hash.compare_exchange_strong(seen, wanted, std::memory_order_relaxed)) {
            return &meters;
        }
        if (seen == wanted) return &meters;
    }
    return nullptr;
}

}  // namespace fopd::lrs

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lrs/classes/bucket.h"
#include "lrs/classes/keyed_hash.h"

namespace fopd::lrs {

// The meters of a rule's classes, of which there are only so many: each has its own from its first
// request on, and keeps it. So no class that was promised something goes without for want of room.
// Any thread; nobody waits for anybody.
class ReservedClasses {
public:
    struct Meters {
        Meter limit;
        Meter reservation;
    };

    explicit ReservedClasses(std::size_t class_count);

    // Those of the class. Null when there are more classes than were announced.
    Meters* find_or_add(const ClassHash& hash);

private:
    struct Place : Meters {
        std::atomic<std::uint64_t> hash = 0;  // 0: free.
    };

    const std::size_t mask_;
    const std::unique_ptr<Place[]> places_;
};

}  // namespace fopd::lrs

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lrs/classes/bucket.h"
#include "lrs/classes/keyed_hash.h"

namespace fopd::lrs {

// The meters of a rule's classes, whose number is fixed: each class gets its own at its first
// request, and keeps it. So a class with a reservation never lacks one for want of room. Any
// thread; lock-free.
class ReservedClasses {
public:
    struct Meters {
        Meter limit;
        Meter reservation;
    };

    explicit ReservedClasses(std::size_t class_count);

    // The meters of the class. Null if there are more classes than `class_count`.
    Meters* find_or_add(const ClassHash& hash);

private:
    struct ClassMeters : Meters {
        std::atomic<std::uint64_t> hash = 0;  // 0: free.
    };

    const std::size_t mask_;
    const std::unique_ptr<ClassMeters[]> classes_;
};

}  // namespace fopd::lrs

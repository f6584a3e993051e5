#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace fopd::sim {

// Memory for calls to send from and receive into, with guards around each part. Returned memory is
// poisoned and kept for a while, so that a late access is detected.
class LentMemory {
public:
    // The memory of one call. Returned on destruction.
    class Loan {
    public:
        Loan(LentMemory& memory, std::size_t size);
        ~Loan();
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;

        // Both are initially filled with poison.
        std::span<std::byte> source() { return part(0); }
        std::span<std::byte> target() { return part(1); }
        bool guards_untouched() const;

    private:
        std::span<std::byte> part(std::size_t index);
        LentMemory& memory_;
        const std::size_t size_;
        std::vector<std::byte> bytes_;
    };

    // Whether no memory was written after it was returned.
    bool untouched() const;

private:
    std::deque<std::vector<std::byte>> given_back_;  // The most recent ones, oldest first.
    bool was_touched_ = false;
};

}  // namespace fopd::sim

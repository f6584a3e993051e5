#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace fopd::sim {

// Memory for calls to send from and receive into, with guards around each part. What is not lent is
// poisoned, so that it shows who touches it then.
class LentMemory {
    struct Block {
        std::vector<std::byte> bytes;
        std::size_t size = 0;  // Of each part, when it was last lent.
    };

public:
    // What one call has. Given back on destruction.
    class Loan {
    public:
        Loan(LentMemory& memory, std::size_t size);
        ~Loan();
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;

        // Both full of poison at first.
        std::span<std::byte> source() const { return part(0); }
        std::span<std::byte> target() const { return part(1); }
        bool guards_untouched() const;

    private:
        std::span<std::byte> part(std::size_t index) const;
        LentMemory& memory_;
        std::unique_ptr<Block> block_;
    };

    // Whether all that is not lent is as it was left.
    bool untouched() const;

private:
    static constexpr std::size_t kGuardBytes = 64;
    static std::size_t bytes_for(std::size_t size) { return 2 * size + 3 * kGuardBytes; }
    static bool is_poison(std::span<const std::byte> bytes);

    std::vector<std::unique_ptr<Block>> free_;
    bool was_touched_ = false;
};

}  // namespace fopd::sim

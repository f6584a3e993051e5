#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace fopd::sim {

// Memory for calls to send from and receive into, with guard bytes around each part. Guards and
// returned memory are filled with poison, a fixed byte, and the 16 parts returned last are kept. A
// write after the return changes the poison, which untouched() finds; a read after the return gets
// poison instead of the data, which the check of the received data finds.
class LentMemory {
public:
    // The memory of one call. The destructor returns it. REQUIRES: the LentMemory outlives the
    // loan.
    class Loan {
    public:
        Loan(LentMemory& memory, std::size_t size);
        ~Loan();
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;

        // The part to send from. Filled with poison until the caller writes data into it.
        std::span<std::byte> source() { return part(0); }
        // The part to receive into. Filled with poison until the call writes into it.
        std::span<std::byte> target() { return part(1); }
        // Whether nothing was written before, between or behind source() and target().
        bool guards_untouched() const;

    private:
        std::span<std::byte> part(std::size_t index);
        LentMemory& memory_;
        const std::size_t size_;
        std::vector<std::byte> bytes_;
    };

    // Whether no returned memory was written after its return.
    bool untouched() const;

private:
    std::deque<std::vector<std::byte>> given_back_;  // The memory returned last, oldest first.
    bool was_touched_ = false;
};

}  // namespace fopd::sim

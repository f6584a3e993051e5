#pragma once

#include <atomic>
#include <cstdint>

namespace fopd::core {

// A number that one thread writes and any thread may read at any time, at the price of plain loads
// and stores. Readers see each number whole, and several numbers not necessarily of one instant.
class Counter {
public:
    void add(std::uint64_t amount) { set(get() + amount); }
    void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
    std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_ = 0;
};

}  // namespace fopd::core

#pragma once

#include <atomic>
#include <cstdint>

namespace fopd::core {

// A number that one thread writes and any thread may read at any time, at the cost of plain loads
// and stores. Each read is atomic, but values of several counters need not be from the same
// instant.
class Counter {
public:
    void add(std::uint64_t amount) { set(get() + amount); }
    void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
    std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> value_ = 0;
};

}  // namespace fopd::core

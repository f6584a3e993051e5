#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lrs/classes/ticks.h"

namespace fopd::lrs {

// A heap of entries by time, and by order of entry if the time is the same. Entries are removed at
// the top only; a stale entry stays until it gets there.
class ReadyHeap {
public:
    struct Entry {
        Ticks at = 0;
        std::uint32_t order = 0;  // Unique and increasing; it may wrap.
        std::uint32_t index = 0;  // The index of the ready class or line.
    };

    bool empty() const { return entries_.empty(); }
    std::size_t size() const { return entries_.size(); }
    const Entry& top() const { return entries_.front(); }

    void push(const Entry& entry);
    void pop_top();
    void replace_top(const Entry& entry);
    void clear() { entries_.clear(); }

private:
    static constexpr std::size_t kWays = 4;

    static bool is_before(const Entry& a, const Entry& b) {
        if (a.at != b.at) return a.at < b.at;
        return static_cast<std::int32_t>(a.order - b.order) < 0;
    }
    void sink(std::size_t index, const Entry& entry);

    std::vector<Entry> entries_;
};

}  // namespace fopd::lrs

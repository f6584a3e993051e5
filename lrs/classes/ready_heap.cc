#include "lrs/classes/ready_heap.h"

#include <algorithm>

namespace fopd::lrs {

void ReadyHeap::push(const Entry& entry) {
    entries_.push_back(entry);
    std::size_t index = entries_.size() - 1;
    while (index > 0) {
        const std::size_t parent = (index - 1) / kWays;
        if (!is_before(entry, entries_[parent])) break;
        entries_[index] = entries_[parent];
        index = parent;
    }
    entries_[index] = entry;
}

void ReadyHeap::pop_top() {
    const Entry last = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) sink(0, last);
}

void ReadyHeap::replace_top(const Entry& entry) {
    sink(0, entry);
}

void ReadyHeap::sink(std::size_t index, const Entry& entry) {
    for (;;) {
        const std::size_t first = index * kWays + 1;
        if (first >= entries_.size()) break;
        const std::size_t end = std::min(first + kWays, entries_.size());
        std::size_t least = first;
        for (std::size_t child = first + 1; child < end; ++child) {
            if (is_before(entries_[child], entries_[least])) least = child;
        }
        if (!is_before(entries_[least], entry)) break;
        entries_[index] = entries_[least];
        index = least;
    }
    entries_[index] = entry;
}

}  // namespace fopd::lrs

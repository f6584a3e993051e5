#include "core/timer_heap.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::core {

namespace {
constexpr std::size_t kChildren = 4;
}

void Timer::leave_heap() {
    heap_->remove(index_);
}

TimerHeap::~TimerHeap() {
    for (const Entry& entry : heap_) entry.timer->heap_ = nullptr;
}

void TimerHeap::arm(Timer& timer, Instant deadline) {
    ENSURE(timer.heap_ == nullptr || timer.heap_ == this);
    timer.disarm();
    timer.heap_ = this;
    heap_.emplace_back();
    sift_up(heap_.size() - 1, Entry{.deadline = deadline, .order = arm_count_++, .timer = &timer});
}

bool TimerHeap::fire_next(Instant now) {
    if (heap_.empty() || heap_.front().deadline > now) return false;
    Timer& timer = *heap_.front().timer;
    remove(0);
    timer.fire_(timer);
    return true;
}

void TimerHeap::remove(std::size_t index) {
    ENSURE(index < heap_.size());
    heap_[index].timer->heap_ = nullptr;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (index == heap_.size()) return;
    if (index > 0 && earlier(last, heap_[(index - 1) / kChildren])) {
        sift_up(index, last);
    } else {
        sift_down(index, last);
    }
}

void TimerHeap::put(std::size_t index, const Entry& entry) {
    heap_[index] = entry;
    entry.timer->index_ = index;
}

void TimerHeap::sift_up(std::size_t index, const Entry& entry) {
    while (index > 0) {
        const std::size_t parent = (index - 1) / kChildren;
        if (!earlier(entry, heap_[parent])) break;
        put(index, heap_[parent]);
        index = parent;
    }
    put(index, entry);
}

void TimerHeap::sift_down(std::size_t index, const Entry& entry) {
    for (;;) {
        const std::size_t first = index * kChildren + 1;
        if (first >= heap_.size()) break;
        const std::size_t end = std::min(first + kChildren, heap_.size());
        std::size_t best = first;
        for (std::size_t child = first + 1; child < end; ++child) {
            if (earlier(heap_[child], heap_[best])) best = child;
        }
        if (!earlier(heap_[best], entry)) break;
        put(index, heap_[best]);
        index = best;
    }
    put(index, entry);
}

}  // namespace fopd::core

#pragma once

#include <cstdint>
#include <vector>

#include "core/time.h"

namespace fopd::core {

class TimerHeap;

// A one-shot timer: its callback runs at a deadline. Awaiters derive from it; Reactor::arm() arms
// it. It cannot be copied or moved, and its destructor disarms it.
class Timer {
public:
    using Fire = void (*)(Timer&);

    explicit Timer(Fire fire) : fire_(fire) {}
    ~Timer() { disarm(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    bool armed() const { return heap_ != nullptr; }
    void disarm() {
        if (heap_ != nullptr) leave_heap();
    }

private:
    friend TimerHeap;
    void leave_heap();

    Fire fire_;
    TimerHeap* heap_ = nullptr;
    std::size_t index_ = 0;  // Its index in the heap while armed.
};

// The armed timers of one reactor, earliest first; equal deadlines in arming order. Arming and
// disarming are O(log n). Lives on the reactor's thread.
class TimerHeap {
public:
    TimerHeap() = default;
    ~TimerHeap();
    TimerHeap(const TimerHeap&) = delete;
    TimerHeap& operator=(const TimerHeap&) = delete;

    // Arms `timer`; if it is armed already, moves it to the new deadline, as if armed anew.
    void arm(Timer& timer, Instant deadline);

    bool empty() const { return heap_.empty(); }
    std::size_t count() const { return heap_.size(); }
    // The earliest deadline, or kNever.
    Instant next_deadline() const { return heap_.empty() ? kNever : heap_.front().deadline; }

    // Fires the earliest timer due at `now`; false if there is none.
    bool fire_next(Instant now);

private:
    friend Timer;

    struct Entry {
        Instant deadline;
        std::uint64_t order;  // Counts calls of arm(); orders equal deadlines.
        Timer* timer;
    };
    static bool earlier(const Entry& a, const Entry& b) {
        return a.deadline != b.deadline ? a.deadline < b.deadline : a.order < b.order;
    }

    void remove(std::size_t index);
    void put(std::size_t index, const Entry& entry);
    void sift_up(std::size_t index, const Entry& entry);
    void sift_down(std::size_t index, const Entry& entry);

    std::vector<Entry> heap_;  // Each node has four children: fewer levels, and its children are in
                               // one or two cache lines.
    std::uint64_t arm_count_ = 0;
};

}  // namespace fopd::core

#pragma once

#include <cstdint>

#include "core/intrusive_list.h"
#include "core/time.h"

namespace fopd::core {

// Something that takes part in every turn of its reactor: a library that must be asked for what has
// happened, and work that is gathered during a turn to be done at once. Added to a reactor and
// removed from it on its thread; not while it is being called.
class Poller : public ListNode {
public:
    // Whether to look for work a while longer before sleeping: it is unlikely to come soon; others
    // of late came soon, or not; it is coming right now, though it may take longer to be complete.
    enum class Look : std::uint8_t { kNot, kIfItPays, kAlways };

    // After the timers and before the coroutines: completes what is done. True when it found
    // anything.
    virtual bool poll() = 0;
    // After the coroutines: what was gathered in this turn leaves.
    virtual void flush() = 0;
    // Nothing is left to do. How long the reactor may sleep unless it is woken: zero when there is
    // something to do after all. A poller that waits for a descriptor has the kernel watch it now.
    virtual Duration sleep_max() = 0;
    virtual Look look() const = 0;

protected:
    ~Poller() = default;
};

}  // namespace fopd::core

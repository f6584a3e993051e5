#pragma once

#include <cstdint>

#include "core/intrusive_list.h"
#include "core/time.h"

namespace fopd::core {

// Takes part in every turn of its reactor: for libraries that must be polled for events, and for
// work that is batched during a turn. Must be added and removed on the reactor's thread, and not
// during one of its own calls.
class Poller : public ListNode {
public:
    // Whether to look for work a while longer before sleeping: it is unlikely to come soon; others
    // of late came soon, or not; it is coming right now, though it may take longer to be complete.
    enum class Look : std::uint8_t { kNot, kIfItPays, kAlways };

    // Called after the timers and before the coroutines: completes finished operations. Returns
    // true when it found any.
    virtual bool poll() = 0;
    // Called after the coroutines: submits the work batched in this turn.
    virtual void flush() = 0;
    // Nothing is left to do. How long the reactor may sleep unless it is woken: zero when there is
    // something to do after all. A poller that waits for a descriptor has the kernel watch it now.
    virtual Duration sleep_max() = 0;
    virtual Look look() const = 0;

protected:
    ~Poller() = default;
};

}  // namespace fopd::core

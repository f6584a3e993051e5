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
    // Whether the reactor should spin before it sleeps: kNoNeed, if no other poller wants it;
    // kIfItPays, if recent spins found work; kAlways, because the poller's work moves on only while
    // it is polled; kNever, because polling costs more than it is likely to find. If pollers
    // differ, the largest of these values counts.
    enum class Look : std::uint8_t { kNoNeed, kIfItPays, kAlways, kNever };

    // Called after the timers and before the coroutines: completes finished operations. Returns
    // true if there were any, or if something is left for end_of_turn().
    virtual bool poll() = 0;
    // Called after the coroutines: submits the work batched in this turn.
    virtual void end_of_turn() = 0;
    // Called when there is no work left. Returns how long the reactor may sleep unless it is woken:
    // zero if there is work after all. A poller that waits for a descriptor must let the kernel
    // watch it now.
    virtual Duration sleep_max() = 0;
    virtual Look look() const { return Look::kIfItPays; }

protected:
    ~Poller() = default;
};

}  // namespace fopd::core

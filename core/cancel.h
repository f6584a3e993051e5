#pragma once

#include "core/intrusive_list.h"

namespace fopd::core {

// Its callback runs once, when its CancelSource is cancelled. Awaiters derive from it.
class CancelHook : public ListNode {
public:
    using Notify = void (*)(CancelHook&);
    explicit CancelHook(Notify notify) : notify_(notify) {}

private:
    friend class CancelSource;
    Notify notify_;
};

// Cancels every wait registered with it. A cancelled operation may still take time to end, for
// example until the kernel has released its buffer. Used on one reactor; must outlive every wait
// registered with it.
class CancelSource {
public:
    CancelSource() = default;
    CancelSource(const CancelSource&) = delete;
    CancelSource& operator=(const CancelSource&) = delete;

    bool cancelled() const { return cancelled_; }

    // Ends all waits with this source. Later ones end at once. A second call does nothing.
    void cancel() {
        cancelled_ = true;
        while (CancelHook* hook = hooks_.pop_front()) hook->notify_(*hook);
    }

    // REQUIRES: not cancelled.
    void add(CancelHook& hook) {
        ENSURE(!cancelled_);
        hooks_.push_back(hook);
    }

private:
    IntrusiveList<CancelHook> hooks_;
    bool cancelled_ = false;
};

}  // namespace fopd::core

#pragma once

#include "core/intrusive_list.h"

namespace fopd::core {

// Told once when its CancelSource is cancelled. Awaiters derive from it.
class CancelHook : public ListNode {
public:
    using Notify = void (*)(CancelHook&);
    explicit CancelHook(Notify notify) : notify_(notify) {}

private:
    friend class CancelSource;
    Notify notify_;
};

// Asks everything that waits under it to give up. What is asked may need time: a buffer the kernel
// holds comes back first. Lives on one reactor and outlives every wait that names it.
class CancelSource {
public:
    CancelSource() = default;
    CancelSource(const CancelSource&) = delete;
    CancelSource& operator=(const CancelSource&) = delete;

    bool cancelled() const { return cancelled_; }

    // Idempotent. Waits that begin later under this source end at once.
    void cancel() {
        cancelled_ = true;
        while (CancelHook* hook = hooks_.pop_front()) hook->notify_(*hook);
    }

    // Requires: not cancelled.
    void add(CancelHook& hook) {
        ENSURE(!cancelled_);
        hooks_.push_back(hook);
    }

private:
    IntrusiveList<CancelHook> hooks_;
    bool cancelled_ = false;
};

}  // namespace fopd::core

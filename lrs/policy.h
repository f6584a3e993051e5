#pragma once

#include "core/time.h"
#include "lrs/request.h"

namespace fopd::lrs {

// Decides which of the waiting data requests is next. Pure: it is given the time, and does no I/O.
// It owns nothing; a request it holds stays where it is until it was popped or removed.
class Policy {
public:
    struct Next {
        Request* request = nullptr;
        // Without a request: when to ask again, unless something is pushed or completed before.
        Instant again = kNever;
    };

    virtual ~Policy() = default;

    virtual void push(Request& request, Instant now) = 0;
    virtual Next pop(Instant now) = 0;
    // Takes out one that is waiting: its client gave up, or everything must go.
    virtual void remove(Request& request) = 0;
    // One that was popped has ended.
    virtual void complete(Request& request, Instant now) = 0;
};

}  // namespace fopd::lrs

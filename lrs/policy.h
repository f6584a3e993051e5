#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/time.h"
#include "lrs/class_figures.h"
#include "lrs/request.h"

namespace fopd::lrs {

struct PolicyParts;
struct PolicySettings;

// Decides which of the waiting data requests is next. Pure: it is given the time, and does no I/O.
// It owns nothing; a request it holds stays where it is until it was popped or removed. It may be
// destroyed when it holds none, also while some that were popped have not ended: it hears no more
// of them.
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
    // One that waits goes now, whatever the order. It counts as served, but is not popped.
    virtual void let_pass(Request& request, Instant /*now*/) { remove(request); }

    enum class Adapted : std::uint8_t {
        kNot,     // It is as before, and only a new one can be set so.
        kAtOnce,  // Also with what waits.
        // It gives out nothing of what waits until it was moved: each request, the oldest first,
        // and before any that comes later is pushed.
        kByMoves,
    };
    // Goes on as these settings say. Requires: they choose the policy that it is.
    virtual Adapted adapt(const PolicySettings& /*settings*/, const PolicyParts& /*parts*/,
                          Instant /*now*/) {
        return Adapted::kNot;
    }
    // One that waits since before it adapted by moves has its place again.
    virtual void move(Request& request, Instant now) {
        remove(request);
        push(request, now);
    }

    // Whether one that waits does so because its class may have no more now.
    virtual bool is_held_back(const Request& /*request*/, Instant /*now*/) const { return false; }

    // -- for those who look on --

    // Shows each class it has. False: it has none.
    virtual bool visit_classes(Instant /*now*/, const ClassVisitor& /*visitor*/) { return false; }

    // -- for policies that decide together with those of other nodes --

    // What it has to say for the next epoch goes into `room`; how many bytes that is.
    virtual std::size_t write_epoch(std::span<std::byte> /*room*/, Instant /*now*/) { return 0; }
    // An epoch has begun, for which all together have said `data`.
    virtual void start_epoch(std::span<const std::byte> /*data*/, Instant /*now*/) {}
};

}  // namespace fopd::lrs

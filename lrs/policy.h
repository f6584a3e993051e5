#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"
#include "core/time.h"
#include "eh/handler.h"
#include "lrs/class_figures.h"
#include "lrs/epoch_frame.h"
#include "lrs/request.h"

namespace fopd::lrs {

struct PolicyParts;
struct PolicySettings;

// Decides which of the waiting data requests is served next. A policy is pure: the caller passes in
// the time, and the policy does no I/O. A policy does not own requests; the caller must keep a
// pushed request at its address until the request is popped or removed. A policy may be destroyed
// when no request waits in it, even if popped requests have not ended: complete() is then not
// called for these requests.
class Policy {
public:
    struct Next {
        Request* request = nullptr;
        // If `request` is null: when to call pop() again. An earlier push() or complete() is
        // also a reason to call it.
        Instant again = kNever;
    };

    virtual ~Policy() = default;

    virtual void push(Request& request, Instant now) = 0;
    virtual Next pop(Instant now) = 0;
    // Takes out a waiting request, because its client gave up or the policy is being emptied.
    virtual void remove(Request& request) = 0;
    // A popped request has ended.
    virtual void complete(Request& request, Instant now) = 0;
    // Takes out a waiting request that is served now, out of order. The policy counts the request
    // as served, but complete() is not called for it.
    virtual void let_pass(Request& request, Instant /*now*/) { remove(request); }

    enum class Adapted : std::uint8_t {
        kNot,     // The policy is unchanged. The settings need a new policy.
        kAtOnce,  // The settings apply now, also to waiting requests.
        // The settings apply to a waiting request once the caller has passed it to move(); until
        // then pop() does not return it. The caller moves all waiting requests, the oldest first,
        // before it pushes newer requests.
        kByMoves,
    };
    // Applies new settings. REQUIRES: the settings select this policy.
    virtual Adapted adapt(const PolicySettings& /*settings*/, const PolicyParts& /*parts*/,
                          Instant /*now*/) {
        return Adapted::kNot;
    }
    // Moves a request that waited when adapt() returned kByMoves to its new position.
    virtual void move(Request& request, Instant now) {
        remove(request);
        push(request, now);
    }

    // Whether a waiting request waits because its class has reached its limit.
    virtual bool is_held_back(const Request& /*request*/, Instant /*now*/) const { return false; }

    // -- for status reports --

    // Calls `visitor` for each class. Returns false if the policy has no classes.
    virtual bool visit_classes(Instant /*now*/, const ClassVisitor& /*visitor*/) { return false; }

    // The class of a request that waits here, or that pop() has just returned. Valid until the next
    // call.
    virtual ClassLabel class_of(const Request& /*request*/) const { return {.name = kAllClasses}; }

    // -- for policies that coordinate with the policies of other nodes --

    // The name of the part of a frame that this policy writes and reads; empty: it has none.
    virtual std::string_view epoch_part() const { return {}; }
    // Writes this node's part of the next epoch into `room`, which has zeros. Called only if the
    // policy has a part.
    virtual void write_epoch(std::span<std::byte> /*room*/, Instant /*now*/) {}
    // An epoch has begun. `data` are the combined parts of all nodes that have a policy of this
    // kind; it may be that no node had one when it became ready, this one included.
    virtual void start_epoch(eh::EpochNumber /*epoch*/, const EpochPartData& /*data*/,
                             Instant /*now*/) {}
    // The nodes could not agree on the next epoch. The policy drops its state from earlier epochs,
    // and continues without the other nodes until start_epoch().
    virtual void lose_epoch(const Error& /*reason*/, Instant /*now*/) {}
    // When the present epoch is over for this policy: the group has no requests left, or its time
    // has passed. An instant that has passed means now; kNever, that the policy does not mind. The
    // scheduler asks again after each change of its requests.
    virtual Instant epoch_over_at() const { return kNever; }
};

}  // namespace fopd::lrs

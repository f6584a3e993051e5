#pragma once

#include <optional>

#include "core/task.h"
#include "objects/object_change.h"
#include "objects/range_locks.h"
#include "objects/reply_record.h"
#include "objects/reply_shares.h"
#include "reqh/refusal.h"
#include "reqh/running_fop.h"
#include "store/object.h"

namespace fopd::reqh {

// Lets a fop that must not run twice run once: finds the reply of an earlier run, which was
// recorded with its change, and records a reply with the change of this run.
class RecordedReplies {
public:
    // The fop outlives it.
    explicit RecordedReplies(const RunningFop& fop) : fop_(fop) {}
    RecordedReplies(const RecordedReplies&) = delete;
    RecordedReplies& operator=(const RecordedReplies&) = delete;

    // The recorded reply, if there is one and its change is durable by now. Until end(), the same
    // request waits here if it is sent again. kCancelled: the client already has the reply.
    // kTryAgain: there is no room for the reply, because its principal has its share.
    Task<Granted<std::optional<objects::RecordedReply>>> find();
    // Lets the same request, sent again, go on. find() must be called again before anything is
    // changed.
    void let_same_run() { lock_.release(); }
    // Adds the reply to the fop's change. REQUIRES: find() was called.
    void put_reply(const objects::RecordedReply& reply, objects::ObjectChange& change);
    // Whether a change that begins now stores a reply in a request place that has none yet. Then
    // keep_room() is called once the change has begun.
    bool fills_place() const;
    void keep_room();
    // Allows the same request to run again, and gives back room that was not kept.
    void end();

private:
    Granted<> take_room();

    const RunningFop& fop_;
    store::ReplyKey reply_key_{};
    objects::RangeLock lock_;
    objects::ReplyRoom room_;
    bool puts_reply_ = false;
};

}  // namespace fopd::reqh

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/io.h"
#include "core/reactor.h"
#include "core/reused_objects.h"
#include "core/task.h"
#include "fop/fop_type.h"
#include "fop/message.h"
#include "objects/access.h"
#include "objects/block_io.h"
#include "objects/home_volume.h"
#include "objects/object_change.h"
#include "objects/range_locks.h"
#include "objects/reply_record.h"
#include "objects/stores.h"
#include "reqh/access_check.h"
#include "reqh/change_space.h"
#include "reqh/client_transfer.h"
#include "reqh/fop_work.h"
#include "reqh/held_names.h"
#include "reqh/layout_lookup.h"
#include "reqh/phase.h"
#include "reqh/progress.h"
#include "reqh/recorded_replies.h"
#include "reqh/refusal.h"
#include "reqh/refusal_words.h"
#include "reqh/running_fop.h"
#include "reqh/target_object.h"
#include "store/volume.h"

namespace fopd::reqh {

// The execution of one fop after its sender is authenticated and its buffer is allocated: the steps
// that executors are built from, and the state of these steps. Each step enters its phase.
//
// An operation runs on the home locality of its object. The fom owns the operation and lives on the
// locality of the session, where the operation begins and ends; in between the operation reaches
// the session by messages to the session's locality. An operation is large, so it is reused for the
// next fop.
class Operation : public RunningFop, public core::ReusedObject {
public:
    Operation() = default;
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    // -- for the fom --

    void begin(const Origin& origin) {
        begin_at(origin);
        io_.set_observer(origin.progress);
        target_.forget();
        device_.clear();
    }
    // Executes the fop at its home locality. The reply may borrow from the operation. When run()
    // ends, the operation holds no locks, names or blocks.
    Task<fop::Reply> run(Site site);

    // The object that it is about, as it was loaded last; null: it was not loaded.
    const store::Object* known_object() const;
    // The name of the first disk that it used; empty: none.
    std::string_view device() const { return device_; }

    // Releases locks, reads in progress and allocated blocks of the current locality.
    void leave();

    // -- the fop --

    AccessCheck& access() { return access_; }
    const AccessCheck& access() const { return access_; }
    LayoutLookup& layout() { return layout_; }

    // -- the steps --

    // Selects the disk of this slot, which is at this locality. kMediumMissing; kNotFound: there is
    // no such slot.
    Granted<> find_home(store::Slot slot);
    // Whether a new object or upload may be stored here; returns the pool of the header, which must
    // be the disk's, or have the disk's pool as its staging: kWrongPool, kReadOnly.
    Granted<objects::PoolId> check_takes_new() const;
    // The reply of an earlier run of the request, from its recorded reply; see
    // RecordedReplies::find(). Only for fops that must not run twice, and before any step that
    // could refuse a request that was executed.
    Task<Granted<std::optional<fop::Reply>>> find_recorded_reply();
    // While this operation waits for its client, the same request need not wait for it.
    // find_recorded_reply() must be called again before anything is changed.
    void let_same_run() { recorded_replies_.let_same_run(); }
    // Held before blocks are locked. Let go when the operation's change is durable, or at its end.
    HeldNames& names() { return names_; }
    const HeldNames& names() const { return names_; }
    // Waits for a range lock on blocks of an object. An operation holds at most one range lock.
    Task<Granted<>> lock(objects::LockRequest request);
    // Takes a shared lock on the attributes of an object only: until then the map may show a change
    // that can still be lost.
    Task<Granted<>> lock_to_look(store::Fid fid) {
        return lock({.fid = fid, .range = objects::kAttributes});
    }
    Task<Granted<>> lock_whole(store::Fid fid) {
        return lock(
            {.fid = fid, .range = objects::kWholeObject, .mode = objects::LockMode::kExclusive});
    }
    void unlock() { lock_.release(); }
    objects::RangeLock& held_lock() { return lock_; }

    // Like target().load() and load_upload(). Blocks that the change adds or removes are charged to
    // the owner of the loaded object.
    Granted<> load_object(store::Fid fid, objects::Access access);
    Granted<> load_upload(store::Fid fid);
    // Loads an object as it is durable now, and holds no lock on it.
    Task<Granted<>> look_at(store::Fid fid, objects::Access access);
    TargetObject& target() { return target_; }
    const store::Object& object() const { return target_.get(); }

    // I/O on the disk of home(), with memory of the buffer or other memory.
    objects::BlockIo& io() { return io_; }
    store::Reading& reading() { return reading_; }
    const ClientTransfer& client() const { return client_; }

    // -- a change: take its space, collect its records, reserve(), begin_change(),
    // finish_change() --

    objects::ObjectChange& change() { return change_; }
    ChangeSpace& space() { return space_; }
    // REQUIRES: find_recorded_reply() was called.
    void put_reply(const objects::RecordedReply& reply) {
        recorded_replies_.put_reply(reply, change_);
    }
    // Reserves room in the log for the records so far and `more_bytes`. Then the fop is in phase
    // execute, unless it was cancelled.
    Task<Granted<store::Reservation>> reserve(std::size_t more_bytes,
                                              store::Purpose purpose = store::Purpose::kAdding);
    // Begins the change. After an error nothing of it remains.
    Granted<> begin_change(store::Reservation reservation, store::Durability durability,
                           store::Data data);
    // Describes a change by the caller for ChangedRanges; `before` is from the object's record.
    objects::ChangedRanges::Change changed_range(store::Fid fid, const fop::Range& range,
                                                 const store::LastWriter& before) const;
    // The last writer for the object's record when the caller has changed the bytes. `before` is
    // empty for a new object.
    store::LastWriter last_writer(const store::LastWriter& before) const;
    // Waits until the change is durable, or buffered, as requested. After begin_change() the
    // operation cannot be cancelled any more.
    Task<Granted<fop::Receipt>> finish_change(store::Data data);

    // begin_change() and finish_change() of a durable change without data.
    Task<Granted<fop::Receipt>> commit_durable(store::Reservation reservation);

    // -- replies --

    // The change that the recorded reply describes.
    fop::Changed changed_then(const objects::RecordedReply& reply) const;
    // The receipt of everything that is durable on the disk, for replies without a change of their
    // own: a receipt of a durable change shows the client that all earlier changes are durable.
    fop::Receipt durable_receipt() const;
    // The content of the block does not match its checksum. Also emits an event.
    Refusal corrupt(store::Fid fid, std::uint64_t block);
    fop::Reply refuse(const Refusal& refusal) const {
        return {.status = refusal.status, .words = refusal.words};
    }

    FopWork& work() { return work_; }

private:
    Task<fop::Reply> run_here();
    // Returns the recorded reply, or executes the steps.
    Task<fop::Reply> run_once();
    Task<Granted<fop::Reply>> run_granted();
    Refusal why_not_changed(const Error& error);

    RefusalWords words_;
    std::string device_;
    AccessCheck access_{*this, words_};
    LayoutLookup layout_{*this, words_};
    TargetObject target_{*this, layout_, access_};
    HeldNames names_{*this};
    ClientTransfer client_{*this};
    RecordedReplies recorded_replies_{*this};
    objects::RangeLock lock_;
    objects::BlockIo io_;
    FopWork work_;
    store::Reading reading_;
    objects::ObjectChange change_;
    ChangeSpace space_{*this, change_, words_};
};

}  // namespace fopd::reqh

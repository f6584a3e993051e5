#pragma once

#include <cstdint>
#include <string_view>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "library/recall.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::library {

// The objects of tape pools on the disks of one locality: which of them need a copy on tape, which
// are released, and their recalls. Each locality has one.
//
// All calls are made on its reactor, which is that of the home of the object; another locality
// reaches it with core::run_task_on() and the gate of the stores (as fops reach objects).
class Staging {
public:
    virtual ~Staging() = default;

    // Records a recall of an object, or joins the recall that it has. Durable on return. A request
    // that only unpins is answered kWaiting if the object has a recall. A request that withdraws is
    // answered kWaiting if a client has asked for the object. kNotFound: there is no such object
    // here. kUnsupported: the node has no tape library.
    virtual Task<Result<RecallAsked>> recall(RecallWish wish, core::WaitOptions wait) = 0;
    // Waits until the object's recall ends; returns at once if it has none. Holds no lock
    // meanwhile. After the recall, the object stays on the disk for some time or until `reader` has
    // read it. `reader` is zeros if the caller will not read the object.
    virtual Task<Result<RecallEnd>> wait_for_recall(Ticket ticket, store::ClientId reader,
                                                    core::WaitOptions wait) = 0;
    // A client has read so many bytes of an object.
    virtual void note_read(store::Fid fid, store::ClientId reader, std::uint64_t bytes) = 0;
    // Cancels the object's recall. kNotFound: it has none.
    virtual Task<Result<void>> cancel_recall(Ticket ticket, core::WaitOptions wait) = 0;
    // Frees the disk's blocks of an object that is on tape, durably. Does nothing if the object has
    // no blocks. kBusy: its current bytes are not on tape yet, or it is pinned, or in use.
    // kNotFound: there is no such object here. kInvalid: its pool is not a tape pool.
    virtual Task<Result<void>> release(store::Fid fid, core::WaitOptions wait) = 0;
    // Called when a change did not fit on the disk of the slot. For some time, objects that need a
    // copy are written to tape at once, and objects that are on tape are released, until the disk
    // has `free_blocks`. Returns at once; called again for each attempt of the change.
    virtual void want_room(store::Slot slot, std::uint64_t free_blocks) = 0;
};

}  // namespace fopd::library

#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "core/cancel.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "devices/label.h"
#include "store/layered_index.h"
#include "store/name_sink.h"
#include "store/object_map.h"

namespace fopd::store {

// Reports to a name sink which names the objects of a volume have: each name in an object's record
// is a claim. A change of names is reported when it is durable in the log, by the coroutine that
// finishes it. Before a checkpoint moves records into the index, it waits until the sink has made
// their names durable, because a replay would not show them again.
//
// The index stores the newest log entry that changed a name. A sink that does not know all changes
// up to this entry has lost some; then it forgets the disk, and gets all claims again. The same
// happens when the index is rebuilt: cleaning may have dropped the record that made a claim, and
// then the replay does not show that the claim ended. Lives on the volume's reactor.
class VolumeNames {
public:
    struct Parts {
        core::Reactor& reactor;
        const LayeredIndex& index;
        ObjectMap& map;
        NameSink* sink;  // Null: names are not told.
    };
    VolumeNames(const Parts& parts, devices::DiskId disk, Slot slot);

    // -- opening --

    // REQUIRES: called before the replay. Asks the sink up to which log entry it has made names
    // durable, and returns that entry. A log without this entry is damaged. If the sink has lost
    // names, it first gets all claims again.
    Task<Result<std::uint64_t>> ask();

    // -- changes --

    // REQUIRES: called before the object's new record is applied to the map. Adds the end of the
    // old claim and the begin of the new one to `changes`, if they differ. `object` is the new
    // record; null: the object is removed.
    Result<void> note(Fid fid, const Object* object, NameChanges& changes);
    // A change with names was begun in this log entry. REQUIRES: tell() or give_up() follows.
    void begun(std::uint64_t seq);
    // Sends the changes to the sink, and waits for it. REQUIRES: they are durable in the log.
    Task<Result<void>> tell(const NameChanges* changes, std::uint64_t seq);
    // The changes will not become durable.
    void give_up(std::uint64_t seq) { end_untold(seq); }
    // Sends changes that a replay found in the log, without begun().
    Task<Result<void>> tell_replayed(const NameChanges* changes, std::uint64_t seq);

    // Waits until the sink has received all changes begun so far.
    Task<Result<void>> wait_told(core::CancelSource* cancel);
    // Null: names are not told.
    NameSink* sink() const { return sink_; }

    // Waits until the sink has made all changes up to entry `seq` durable. REQUIRES: they are
    // durable in the log.
    Task<Result<void>> keep(std::uint64_t seq, core::CancelSource* cancel);

private:
    class Teller;

    Task<Result<void>> begin_anew();
    void end_untold(std::uint64_t seq);
    Task<Result<void>> wait_told_up_to(std::uint64_t seq, core::CancelSource* cancel);
    void note_newest(std::uint64_t seq);

    const LayeredIndex& index_;
    ObjectMap& map_;
    NameSink* const sink_;
    const devices::DiskId disk_;
    const Slot slot_;

    std::multiset<std::uint64_t> untold_;  // Log entries after begun(), before tell() or give_up().
    core::WaitQueue told_;
    std::optional<Error> failure_;  // tell() has failed, so that keep() fails, too.
    std::uint64_t newest_ = 0;      // The newest log entry that changed a name.
    std::uint64_t kept_ = 0;        // The argument of the last successful keep() of the sink.
};

}  // namespace fopd::store

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

// What a volume has to tell of its objects' names, and when. The names are told when they are
// durable in the log, each change by whoever finishes it; a checkpoint waits for those, and has
// them kept, before the index may hold what they speak of: a replay will not show it again.
//
// The index notes the newest record that changed a name. Who keeps the names must know as much, or
// has lost them and is told everything. So it is when the index begins anew: what a replay changes
// then is not what the log changed. A record that made a claim may have been dropped because a
// later one ended it, of which who keeps the names has not heard. Lives on the volume's reactor.
class VolumeNames {
public:
    struct Parts {
        core::Reactor& reactor;
        const LayeredIndex& index;
        ObjectMap& map;
        NameSink* sink;  // None: nobody wants to know.
    };
    VolumeNames(const Parts& parts, devices::DiskId disk, Slot slot);

    // -- opening --

    // What of the log was flushed, as far as the sink knows. Before the replay, which goes on from
    // what both have then.
    Task<Result<std::uint64_t>> ask();

    // -- changes --

    // Adds what an object's record changes, before the map has it. No object: it goes.
    Result<void> note(Fid fid, const Object* object, NameChanges& changes);
    // The log has changes of names in this entry. Either tell() or give_up() follows.
    void begun(std::uint64_t seq);
    // Waits until the sink has them. Requires: they are durable.
    Task<Result<void>> tell(const NameChanges* changes, std::uint64_t seq);
    // They never will be.
    void give_up(std::uint64_t seq) { end_untold(seq); }
    // What a replay shows, which was begun and is durable long since.
    Task<Result<void>> tell_replayed(const NameChanges* changes, std::uint64_t seq);

    // Waits until the sink has all that was begun by now.
    Task<Result<void>> wait_told(core::CancelSource* cancel);
    // Null: nobody wants to know.
    NameSink* sink() const { return sink_; }

    // Waits until all that was begun up to `seq`, and is durable, is kept.
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

    std::multiset<std::uint64_t> untold_;  // The entries of changes that are begun and not told.
    core::WaitQueue told_;
    std::optional<Error> failure_;  // Something could not be told: nothing more is kept.
    std::uint64_t newest_ = 0;      // The newest entry that changed a name.
    std::uint64_t kept_ = 0;        // What the sink was last told to keep.
};

}  // namespace fopd::store

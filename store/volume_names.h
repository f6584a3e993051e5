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

// Tells a name sink which names the objects of a volume claim. A change of names is told when it is
// durable in the log, by the coroutine that finishes it. A checkpoint waits for these and lets the
// sink keep them durably before the index contains their records, because a replay would not show
// them again.
//
// The index stores the newest entry that changed a name. A sink that does not know all changes up
// to this entry has lost some; then it forgets the disk, and all claims are told again. The same
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

    // Returns the entry up to which the sink has kept names. Entries up to it were durable, so a
    // log without them is damaged. If the sink has lost names, tells it all claims first. Called
    // before the replay.
    Task<Result<std::uint64_t>> ask();

    // -- changes --

    // Adds to `changes` how a record that is about to be applied changes the object's name. Null:
    // the object is removed.
    Result<void> note(Fid fid, const Object* object, NameChanges& changes);
    // This entry of the log has changes of names. Either tell() or give_up() follows.
    void begun(std::uint64_t seq);
    // Waits until the sink has the changes. REQUIRES: they are durable.
    Task<Result<void>> tell(const NameChanges* changes, std::uint64_t seq);
    // The changes will not become durable.
    void give_up(std::uint64_t seq) { end_untold(seq); }
    // Tells changes that a replay shows, which are durable.
    Task<Result<void>> tell_replayed(const NameChanges* changes, std::uint64_t seq);

    // Waits until the sink has all changes begun so far.
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

    std::multiset<std::uint64_t> untold_;  // Entries with changes that are begun and not told.
    core::WaitQueue told_;
    std::optional<Error> failure_;  // A change could not be told; keep() then fails.
    std::uint64_t newest_ = 0;      // The newest entry that changed a name.
    std::uint64_t kept_ = 0;        // The argument of the last successful keep() of the sink.
};

}  // namespace fopd::store

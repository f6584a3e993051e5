#pragma once

#include "core/cancel.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "store/allocator.h"
#include "store/layered_index.h"
#include "store/log.h"
#include "store/object_map.h"
#include "store/volume.h"
#include "store/volume_names.h"

namespace fopd::store {

// Read access to an open volume, for checks. Changes nothing. The volume outlives it.
class VolumeView {
public:
    struct Parts {
        const Volume& volume;
        core::Reactor& reactor;
        Log& log;
        LayeredIndex& index;
        ObjectMap& map;
        VolumeNames& names;
        Allocator& space;
    };
    explicit VolumeView(const Parts& parts) : parts_(parts) {}

    // Views that the map returns are valid until the next search.
    ObjectMap& map() const { return parts_.map; }
    core::Reactor& reactor() const { return parts_.reactor; }
    bool serving() const { return parts_.volume.serving(); }
    const Error& failure() const { return parts_.volume.failure(); }
    Slot slot() const { return parts_.volume.slot(); }

    // See Log::look_through().
    Task<Result<void>> look_through_log(LogVisitor* visitor, core::WaitOptions wait) const {
        return parts_.log.look_through(visitor, wait);
    }

    // -- the index; see LayeredIndex --

    using Found = LayeredIndex::Found;
    Result<std::optional<Bytes>> get(Bytes key) const { return parts_.index.get(key); }
    Result<Found> at_or_after(LayeredIndex::Range range) const {
        return parts_.index.at_or_after(range);
    }
    Result<Found> next() const { return parts_.index.next(); }
    Result<Found> past_erased(Result<Found> found) const {
        return parts_.index.past_erased(std::move(found));
    }
    const IndexEntry& entry() const { return parts_.index.entry(); }
    ObjectMap::Extents extents(Fid fid, BlockRange range) const {
        return parts_.map.extents(fid, range);
    }
    void release() const { parts_.index.release(); }

    // -- space --

    const Allocator& space() const { return parts_.space; }
    // Null: no observer. One at a time; it outlives its use here.
    void watch_space(SpaceWatch* watch) const { parts_.space.set_watch(watch); }

    // -- names --

    // Null: the volume has no name sink.
    NameSink* names() const { return parts_.names.sink(); }
    // Waits until the name sink has all changes of names that are begun now.
    Task<Result<void>> wait_names_told(core::CancelSource* cancel) const {
        return parts_.names.wait_told(cancel);
    }

private:
    Parts parts_;
};

}  // namespace fopd::store

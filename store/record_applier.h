#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "store/allocator.h"
#include "store/name_sink.h"
#include "store/object_map.h"
#include "store/record.h"
#include "store/volume_names.h"

namespace fopd::store {

// The effects of records besides their changes of the map.
struct RecordEffects {
    std::vector<DiskRange> freed;
    NameChanges names;
    std::int64_t net_blocks = 0;  // How many blocks more objects have; without kClear records.
    bool clears = false;          // Cleared ranges are to be swept.

    // Keeps the memory.
    void reset() {
        freed.clear();
        names.clear();
        net_blocks = 0;
        clears = false;
    }
};

// Changes the map as records say, when a change is begun and when a log is replayed.
class RecordApplier {
public:
    // The map and the names outlive the applier.
    RecordApplier(ObjectMap& map, VolumeNames& names, std::uint32_t extents_a_step)
        : map_(map), names_(names), extents_a_step_(extents_a_step) {}

    // From now on the allocator learns which of the blocks it gave out have a record. Not while a
    // log is replayed: the blocks in use are counted after that.
    void set_space(Allocator* space) { space_ = space; }

    // Adds to `effects`. After an error the map is as it was. kCorrupt: no program of this version
    // writes such a record.
    Result<void> apply(const Record& record, RecordEffects& effects);

private:
    Result<void> apply_extent(const Record& record, RecordEffects& effects);
    Result<void> apply_punch(const Record& record, RecordEffects& effects);
    Result<void> apply_value(const Record& record, NameChanges& names);
    Result<void> apply_upload(const Record& record);
    Result<void> apply_object(const Record& record, NameChanges& names);
    Result<void> apply_copy(const Record& record);
    Result<void> apply_total(const Record& record);
    Result<void> apply_recall(const Record& record);
    Result<void> apply_reply(const Record& record);

    ObjectMap& map_;
    VolumeNames& names_;
    const std::uint32_t extents_a_step_;
    Allocator* space_ = nullptr;
};

}  // namespace fopd::store

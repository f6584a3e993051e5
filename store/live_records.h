#pragma once

#include "core/cancel.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "store/layered_index.h"
#include "store/log.h"
#include "store/object_map.h"
#include "store/record.h"

namespace fopd::store {

// Reads the entries of a segment that is cleaned, and commits those of their records again that
// still describe the present state of an object, upload or reply. So the segment can be freed.
class LiveRecords final : public CleanVisitor {
public:
    // All parts outlive the object.
    struct Parts {
        core::Reactor& reactor;
        Log& log;
        LayeredIndex& index;
        ObjectMap& map;
        core::CancelSource& stop;
    };
    explicit LiveRecords(const Parts& parts) : parts_(parts) {}

    Task<Result<void>> keep(LogEntry entry) override;

private:
    Result<bool> keep_some(RecordReader& reader);
    Result<void> keep_if_alive(const Record& record);
    Result<void> keep_extent(const Record& record);
    Result<bool> is_there(Fid fid);

    const Parts parts_;
    RecordWriter kept_;
};

}  // namespace fopd::store

#pragma once

#include <optional>
#include <string>

#include "core/events.h"
#include "core/result.h"
#include "daemon/disk_bay.h"
#include "daemon/slot_table.h"

namespace fopd::daemon {

// The file that has a node's table of slots. Remembers what it wrote last, so that a table that has
// not changed is not written again. Lives on the control reactor, which it may block.
class SlotFile {
public:
    // Both arguments outlive this object. `bay` is null for a node that never has disks.
    SlotFile(DiskBay* bay, core::EventSink& events) : bay_(bay), events_(events) {}

    // The table in the file; an empty one if there is no file or it is damaged, which is reported.
    SlotTable read();
    // Makes the table durable.
    Result<void> write(const SlotTable& table);
    // The last write has failed: the file has the old or the new table.
    bool has_failed() const { return !written_; }

private:
    DiskBay* const bay_;
    core::EventSink& events_;
    // The text last written durably; nothing after a failed write.
    std::optional<std::string> written_ = std::string();
};

}  // namespace fopd::daemon

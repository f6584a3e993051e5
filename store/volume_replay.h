#pragma once

#include <cstdint>

#include "core/cancel.h"
#include "core/result.h"
#include "core/task.h"
#include "devices/device.h"
#include "store/aligned_memory.h"
#include "store/extent.h"
#include "store/layered_index.h"
#include "store/log_replay.h"
#include "store/log_visitor.h"
#include "store/record_applier.h"
#include "store/volume_names.h"

namespace fopd::store {

// Brings the index of a volume up to date from its log, and tells the names that the log changes.
class VolumeReplay final : public ReplayVisitor {
public:
    // All parts outlive the replay.
    struct Parts {
        devices::Device& device;
        LayeredIndex& index;
        VolumeNames& names;
        RecordApplier& applier;
        core::CancelSource& stop;
    };
    struct Options {
        ReplayOptions::Mode mode = ReplayOptions::Mode::kServe;
        std::uint64_t overlay_bytes = 0;
    };
    VolumeReplay(const Parts& parts, const Options& options) : parts_(parts), options_(options) {}

    // Allocates the read buffer of data_ok(). kNoSpace: no memory.
    Result<void> allocate();
    Task<Result<bool>> data_ok(LogEntry entry) override;
    Task<Result<void>> replay(LogEntry entry) override;

private:
    Task<Result<bool>> blocks_match(Extent extent);
    Task<Result<void>> flush_once();

    const Parts parts_;
    const Options options_;
    AlignedMemory memory_;
    bool flushed_ = false;
};

}  // namespace fopd::store

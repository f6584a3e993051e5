#pragma once

#include <cstdint>

#include "core/result.h"
#include "core/task.h"
#include "devices/device.h"
#include "store/aligned_memory.h"
#include "store/superblock.h"

namespace fopd::store {

// The two copies of a disk's superblock. Lives on the device's reactor; one call at a time.
//
// After an update both copies have the same content, so one damaged copy loses nothing. The second
// is written only when the first is durable, so a crash leaves at least one of them whole.
class SuperblockCopies {
public:
    static constexpr unsigned kCount = 2;

    explicit SuperblockCopies(devices::Device& device) : device_(device) {}
    Result<void> allocate();

    // Reads the newest whole superblock of this disk. kNotFound: none was ever written; kDenied: it
    // is another disk's; kUnsupported, kCorrupt, kIo: neither copy can be used.
    Task<Result<Superblock>> read(LogId disk_id);
    // Where a copy lies on the disk.
    static std::uint64_t block_of(unsigned copy) { return offset_of(copy) / devices::kBlockBytes; }
    // Reads one copy; see read().
    Task<Result<Superblock>> read_copy(unsigned copy, LogId disk_id);
    // Writes one copy; it is durable after a flush.
    Task<Result<void>> write(unsigned copy, Superblock superblock);

private:
    static std::uint64_t offset_of(unsigned copy) { return (1 + copy) * kSuperblockBytes; }

    devices::Device& device_;
    AlignedMemory memory_;
};

}  // namespace fopd::store

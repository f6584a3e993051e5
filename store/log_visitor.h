#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "core/task.h"

namespace fopd::store {

// The records of one entry. Valid until the task of the visitor that receives it ends.
struct LogEntry {
    std::uint64_t epoch = 0;
    std::uint64_t seq = 0;
    std::uint32_t record_count = 0;
    std::span<const std::byte> payload{};
};

// Receives the entries of a log in order when the log is opened.
class ReplayVisitor {
public:
    virtual ~ReplayVisitor() = default;
    // Returns whether the data blocks that the entry's records name have the checksums in the
    // records. False ends the log before this entry. Called right before replay() of the same
    // entry, and only for entries that may not have been flushed before the log was closed.
    virtual Task<Result<bool>> data_ok(LogEntry entry) = 0;
    virtual Task<Result<void>> replay(LogEntry entry) = 0;
};

// Receives the entries of the oldest segment before it is reused.
class CleanVisitor {
public:
    virtual ~CleanVisitor() = default;
    // Commits again the records that are still in use, in short commits that together have no more
    // bytes than the entry, from reservations for cleaning. It need not wait until these commits
    // are durable. REQUIRES: it decides in the turn of each begin() which records are in use, and
    // takes into account every commit begun before, durable or not, because a later record wins in
    // a replay.
    virtual Task<Result<void>> keep(LogEntry entry) = 0;
};

// A problem that Log::look_through() found.
struct LogFault {
    const char* reason = "";
    std::uint64_t first_seq = 0;  // The damaged entries; 0: the problem is in a superblock.
    std::uint64_t last_seq = 0;
    std::uint64_t block = 0;  // On the disk.
};

// Receives the entries that Log::look_through() reads.
class LogVisitor {
public:
    virtual ~LogVisitor() = default;
    // A whole entry, and the block where it lies. An error ends the walk. May suspend.
    virtual Task<Result<void>> entry(LogEntry entry, std::uint64_t block) = 0;
    virtual void fault(const LogFault& fault) = 0;
};

}  // namespace fopd::store

#pragma once

#include <algorithm>
#include <set>
#include <string_view>

#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "objects/stores.h"

namespace fopd::objects {

struct UpkeepOptions {
    Duration interval = 5min;      // Between two rounds, at most; less if upload_timeout is short.
    Duration upload_timeout = 1h;  // An upload without a write for this long is given up.
    // How long recorded replies are kept: longer than clients send a request again.
    Duration replies_kept = 1h;
};

// Removes entries on the disks of a locality that no client will ask for again: replies to fops
// that must not run twice, and uploads that were never committed. The age of a reply counts only
// time in service; that of an upload counts from the start of the daemon at the earliest. Also
// counts the objects of each disk. Each disk has a task of its own, so that one that does not
// answer delays no other.
class StoreUpkeep {
public:
    // The stores outlive it; its work is one of their duties.
    StoreUpkeep(Stores& stores, const UpkeepOptions& options)
        : stores_(stores),
          options_(options),
          interval_(
              std::min(options.interval, std::max<Duration>(options.upload_timeout / 4, 1s))) {}

    // Called once, when all present disks have been opened.
    void start();
    // Counts the objects of a disk that was opened later than start().
    void count(store::Slot slot);

private:
    Task<void> run();
    Task<void> count_objects(store::Slot slot);
    Task<void> look_after(store::Slot slot);
    Task<void> look_after_held(HomeVolume* home);
    // Removes the disk's replies that are older than replies_kept. REQUIRES: the caller holds the
    // disk.
    Task<Result<void>> forget_replies(HomeVolume* home);
    Task<Result<void>> give_up_uploads(HomeVolume* home);
    void report(const HomeVolume& home, std::string_view task, const Result<void>& result);
    Instant now() const { return stores_.parts().reactor.now(); }

    Stores& stores_;
    const UpkeepOptions options_;
    const Duration interval_;
    std::set<store::Slot> busy_;  // The disks whose task runs.
};

}  // namespace fopd::objects

#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "objects/stores.h"
#include "store/object.h"

namespace fopd::objects {

struct UpkeepOptions {
    Duration interval = 5min;      // At the most; more often where uploads are given up sooner.
    Duration upload_timeout = 1h;  // Without a write, an upload is given up.
    // Longer than a client asks again.
    Duration replies_kept = 1h;
};

// What fops leave behind on the disks of a locality and nobody will ask for again goes: replies to
// fops that must not run twice, uploads that were never committed. The time before a start does not
// count. It counts the objects, too.
class StoreUpkeep {
public:
    // The stores outlive it; its work is one of their duties.
    StoreUpkeep(Stores& stores, const UpkeepOptions& options)
        : stores_(stores),
          options_(options),
          interval_(
              std::min(options.interval, std::max<Duration>(options.upload_timeout / 4, 1s))) {}

    // Once, when the disks that there are have been opened.
    void start();
    // One that came later; start() counts those that were there.
    void count(store::Slot slot);

private:
    // When replies up to this stamp were there already.
    struct Note {
        store::Slot slot = 0;
        Instant at{};
        std::int64_t stamp = 0;
    };

    Task<void> run();
    std::vector<store::Slot> slots() const;
    Task<Result<void>> count_objects(store::Slot slot);
    Task<void> count_later(store::Slot slot);
    Task<Result<void>> look_after(store::Slot slot);
    // Requires: the disk is held.
    Task<Result<void>> forget_replies(HomeVolume* home);
    Task<Result<void>> give_up_uploads(HomeVolume* home);
    Instant now() const { return stores_.parts().reactor.now(); }

    Stores& stores_;
    const UpkeepOptions options_;
    const Duration interval_;
    std::deque<Note> notes_;  // As many as there are intervals in the time replies are kept.
};

}  // namespace fopd::objects

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "objects/stores.h"
#include "store/object.h"

namespace fopd::objects {

// The contents of a disk that would be lost with it.
struct DiskContents {
    std::uint64_t objects = 0;
    std::uint64_t uploads = 0;
    std::uint64_t replies = 0;  // Replies that a client may still ask for.
    bool is_all = true;         // False: counting stopped early, so there are more.

    bool empty() const { return objects == 0 && uploads == 0 && replies == 0; }
    bool holds_only_replies() const { return objects == 0 && uploads == 0; }
};
// "3 objects, 1 upload and 4 recorded replies that clients may still ask for".
std::string describe(const DiskContents& contents);

// Takes a disk out of its locality in three steps: no new objects are placed on it; all holds on it
// end; it can no longer be found. Each step except the last can be undone. Runs on the reactor of
// the stores; one at a time for a disk.
class DiskDeparture {
public:
    // The stores outlive it.
    DiskDeparture(Stores& stores, store::Slot slot) : stores_(stores), slot_(slot) {}

    // Replies that a client may still ask for.
    struct Unheard {
        std::vector<store::ReplyKey> keys{};
        bool may_be_any = false;  // Unknown which: all recorded replies count.
    };
    // Counts the contents, up to some hundred thousand entries. kNotFound: the disk is not here.
    Task<Result<DiskContents>> look(const Unheard* unheard);
    // Stops new objects, and waits until all holds have ended: after that, the contents do not
    // grow. kTimedOut: some holds have not ended, and the disk stays.
    Task<Result<void>> begin(Instant deadline);
    // Undoes begin(): the disk stays.
    void call_off();
    // REQUIRES: begin() succeeded, and the disk is empty. On return, the disk can no longer be
    // found, and all holds on it have ended. No deadline: each holder has its own.
    Task<Result<void>> end();

private:
    Result<HomeVolume*> home();

    Stores& stores_;
    const store::Slot slot_;
};

}  // namespace fopd::objects

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

// What lives on a disk: who takes it away takes that away.
struct DiskContents {
    std::uint64_t objects = 0;
    std::uint64_t names = 0;
    std::uint64_t uploads = 0;
    std::uint64_t extents = 0;  // Of those; what was removed has some until they are swept.
    std::uint64_t replies = 0;  // Of those that somebody may yet ask for.
    bool is_all = true;         // Otherwise there are more: nobody counts for ever.

    bool empty() const { return objects == 0 && uploads == 0 && replies == 0; }
    bool holds_only_replies() const { return objects == 0 && uploads == 0; }
};
// "3 objects with 2 names, 1 upload, 17 extents and 4 replies that their clients may yet ask for".
std::string describe(const DiskContents& contents);

// The way of a disk out of its locality: first nothing new comes to it, then nobody holds it, then
// nobody finds it. Each step can be taken back but the last. On the reactor of the stores; one at a
// time for a disk.
class DiskDeparture {
public:
    // The stores outlive it.
    DiskDeparture(Stores& stores, store::Slot slot) : stores_(stores), slot_(slot) {}

    // Replies that somebody may yet ask for.
    struct Unheard {
        std::vector<store::ReplyKey> keys{};
        bool may_be_any = false;  // Nobody knows which.
    };
    // Counts what is there, up to some hundred thousand. kNotFound: the disk is not here.
    Task<Result<DiskContents>> look(const Unheard* unheard);
    // Nothing new comes any more, and those who were there have ended: what is not there then will
    // not be. kTimedOut: they have not, and the disk stays.
    Task<Result<void>> begin(Instant deadline);
    // It stays.
    void call_off();
    // Requires: begun, and nothing was there. Nobody finds it any more when it returns; those who
    // did have ended. No deadline: each of them has its own.
    Task<Result<void>> end();

private:
    Result<HomeVolume*> home();

    Stores& stores_;
    const store::Slot slot_;
};

}  // namespace fopd::objects

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "store/allocator.h"
#include "store/block_counter.h"
#include "store/object_map.h"
#include "store/record.h"

namespace fopd::store {

// The blocks and objects of an owner in a pool on a disk, including unfinished uploads. Released
// objects count with the blocks that they had on the disk, and not with parts that are back.
struct OwnerShare {
    std::uint64_t blocks = 0;
    std::uint64_t objects = 0;

    friend bool operator==(const OwnerShare&, const OwnerShare&) = default;
};
using OwnerShares = std::map<std::string, OwnerShare, std::less<>>;
// The shares on a disk, by the pool in the records of the objects.
using PoolShares = std::map<std::uint32_t, OwnerShares>;

// How many replies are stored for a client.
struct ClientReplies {
    ClientId client{};
    std::uint32_t count = 0;
};

// Walks through the map of a volume that is being opened: tells the allocator which blocks are in
// use, and counts the blocks and objects of each owner in each pool, and the recorded replies of
// each client.
class VolumeCensus {
public:
    // How the census treats an extent whose blocks are in use already, or are not on the disk.
    enum class BadExtents : std::uint8_t {
        kRefused,
        kIgnored,  // For a volume that is only read: no block is allocated there.
    };
    struct Options {
        std::uint32_t extents_a_turn = 0;
        BadExtents bad_extents = BadExtents::kRefused;
    };

    // Once. REQUIRES: the allocator knows the segments of the log; the map does not change.
    // kCorrupt: see BadExtents.
    Task<Result<void>> take(ObjectMap* map, BlockCounter* counter, Allocator* space,
                            Options options);
    // Instead of take(): counts owners() only. If the map changes meanwhile, the result is of no
    // use.
    Task<Result<void>> count_owners(ObjectMap* map, BlockCounter* counter,
                                    std::uint32_t extents_a_turn);

    const PoolShares& owners() const { return owners_; }
    // By ascending client.
    const std::vector<ClientReplies>& replies() const { return replies_; }
    // When the newest of them was made; 0: there is none.
    Duration newest_reply() const { return newest_reply_; }

private:
    class ExtentTaker;
    class ClearedCounter;
    class ObjectCounter;
    class CopyCounter;
    class ReplyCounter;

    Task<Result<void>> count(ObjectMap* map, BlockCounter* counter, ExtentTaker* taker,
                             std::uint32_t extents_a_turn);
    OwnerShare& share_of(const Object& object);

    PoolShares owners_;
    std::vector<ClientReplies> replies_;
    Duration newest_reply_{};
    bool has_released_ = false;  // An object is released.
};

}  // namespace fopd::store

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "objects/object_name.h"
#include "objects/pool_quota.h"
#include "store/object.h"
#include "store/volume.h"

namespace fopd::objects {

// An owner in a pool, whose quota is charged. The text is borrowed.
struct PoolOwner {
    PoolId pool = 0;
    std::string_view owner{};
};
inline PoolOwner owner_of(const store::Object& object) {
    return {.pool = object.pool, .owner = object.owner};
}

// The blocks and objects of each owner in each pool on a disk. The quota of a pool counts the sum
// over all disks. The pool of an object is the one in its record: the disks of a disk pool may also
// have objects of tape pools. An amount is taken before an object or block is added, and put back
// once a removal can no longer be undone. The blocks of a released object count as they were on the
// disk; those that come back count from its return on. Lives on one reactor.
class DiskUse {
    struct OfPool;

public:
    // The use of one owner in a pool; never moves, and is kept when the owner has nothing left.
    class Owner {
    public:
        std::string_view name() const { return name_; }
        Amount amount() const { return amount_; }
        const QuotaAccount& account() const { return *account_; }
        // The account of all owners of the pool.
        const QuotaAccount& whole() const { return pool_->quota->whole(); }

    private:
        friend class DiskUse;
        std::string_view name_;
        OfPool* pool_ = nullptr;
        QuotaAccount* account_ = nullptr;
        Amount amount_;
        std::uint64_t in_flight_blocks_ = 0;
        std::uint64_t promised_blocks_ = 0;
    };

    explicit DiskUse(const store::PoolShares& counted);
    ~DiskUse();
    DiskUse(const DiskUse&) = delete;
    DiskUse& operator=(const DiskUse&) = delete;

    // Moves its counts of the pool to another quota. Before, the disk has a quota of its own for
    // the pool, without limits.
    void join(PoolId pool, std::shared_ptr<PoolQuota> quota);

    Owner& owner(PoolOwner whose);
    // kOwner: a change of owner, which does not change the pool's use.
    enum class Scope : std::uint8_t { kPoolAndOwner, kOwner };
    enum class Verdict : std::uint8_t { kTaken, kPoolIsFull, kTooManyBlocks, kTooManyObjects };
    Verdict take(Owner& owner, Amount amount, Scope scope);
    // Returns what take() would return now for the pool and the owner, and takes nothing.
    Verdict check(const Owner& owner, Amount amount) const;
    // Counts what exists already, whatever the limits are: an object came back from tape with more
    // blocks than it had.
    void add(Owner& owner, Amount amount);
    // REQUIRES: the amount was taken, or counted at the start.
    void put_back(Owner& owner, Amount amount, Scope scope);

    // Whether the owner or the pool has a limit of blocks now.
    bool has_limit(const Owner& owner) const;
    // Takes blocks that a write in flight will add to the objects of the owner: they count for the
    // owner and the pool, and for no object yet. All or none. See WritesInFlight.
    Verdict take_in_flight(Owner& owner, std::uint64_t blocks);
    // The blocks are those of an object now. REQUIRES: they were taken in flight.
    void settle_in_flight(Owner& owner, std::uint64_t blocks);
    // Undoes settle_in_flight().
    void unsettle_in_flight(Owner& owner, std::uint64_t blocks);
    // The blocks do not come. REQUIRES: they were taken in flight, and not settled.
    void end_in_flight(Owner& owner, std::uint64_t blocks);

    // Promises blocks to uploads of the owner, within the owner's limit on all disks. False: they
    // exceed the limit, and nothing was promised. See QuotaAccount::promise().
    bool promise(Owner& owner, std::uint64_t blocks);
    // Restores an earlier promise, even if it exceeds the limit now.
    void promise_again(Owner& owner, std::uint64_t blocks);
    // REQUIRES: they were promised.
    void end_promise(Owner& owner, std::uint64_t blocks);

    // The blocks and objects of each owner now, without owners that have neither.
    store::PoolShares shares() const;

private:
    struct OfPool {
        std::shared_ptr<PoolQuota> quota = std::make_shared<PoolQuota>();
        std::map<std::string, Owner, std::less<>> owners;
    };

    static void leave(OfPool& pool);

    std::map<PoolId, OfPool> pools_;  // Few.
};

}  // namespace fopd::objects

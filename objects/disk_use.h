#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "objects/pool_quota.h"
#include "store/volume.h"

namespace fopd::objects {

// How much of a disk each owner uses; the disk's part of what the pool's quotas count. An amount is
// taken before an object or block is added, and put back once a removal can no longer be undone.
// Lives on one reactor.
class DiskUse {
public:
    // The use of one owner; never moves, and is kept when the owner has nothing left.
    class Owner {
    public:
        std::string_view name() const { return name_; }
        Amount amount() const { return amount_; }
        const QuotaAccount& account() const { return *account_; }

    private:
        friend class DiskUse;
        std::string_view name_;
        QuotaAccount* account_ = nullptr;
        Amount amount_;
    };

    explicit DiskUse(const store::OwnerShares& counted);
    ~DiskUse() { leave(); }
    DiskUse(const DiskUse&) = delete;
    DiskUse& operator=(const DiskUse&) = delete;

    // Moves its counts to another quota.
    void join(std::shared_ptr<PoolQuota> quota);
    const QuotaAccount& whole() const { return quota_->whole(); }

    Owner& owner(std::string_view name);
    // kOwner: a change of owner, which does not change the pool's use.
    enum class Scope : std::uint8_t { kPoolAndOwner, kOwner };
    enum class Verdict : std::uint8_t { kTaken, kPoolIsFull, kTooManyBlocks, kTooManyObjects };
    Verdict take(Owner& owner, Amount amount, Scope scope);
    // What take() would return now, for the pool and the owner; takes nothing.
    Verdict check(const Owner& owner, Amount amount) const;
    // REQUIRES: the amount was taken, or counted at the start.
    void put_back(Owner& owner, Amount amount, Scope scope);

private:
    void leave();

    std::shared_ptr<PoolQuota> quota_;
    std::map<std::string, Owner, std::less<>> owners_;
};

}  // namespace fopd::objects

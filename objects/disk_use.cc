#include "objects/disk_use.h"

#include <utility>

namespace fopd::objects {

DiskUse::DiskUse(const store::PoolShares& counted) {
    for (const auto& [pool, owners] : counted) {
        for (const auto& [name, share] : owners) {
            const Amount amount{.blocks = share.blocks, .objects = share.objects};
            Owner& each = owner({.pool = pool, .owner = name});
            each.amount_ = amount;
            each.account_->add(amount);
            each.pool_->quota->whole().add(amount);
        }
    }
}

DiskUse::~DiskUse() {
    for (auto& [id, pool] : pools_) leave(pool);
}

void DiskUse::join(PoolId pool, std::shared_ptr<PoolQuota> quota) {
    OfPool& joined = pools_[pool];
    if (quota == joined.quota) return;
    leave(joined);
    joined.quota = std::move(quota);
    for (auto& [name, each] : joined.owners) {
        each.account_ = &joined.quota->account_of(name);
        each.account_->add(each.amount_);
        each.account_->add_in_flight(each.in_flight_blocks_);
        each.account_->add_promise(each.promised_blocks_);
        joined.quota->whole().add(each.amount_);
        joined.quota->whole().add_in_flight(each.in_flight_blocks_);
    }
}

void DiskUse::leave(OfPool& pool) {
    for (auto& [name, each] : pool.owners) {
        each.account_->put_back(each.amount_);
        each.account_->end_in_flight(each.in_flight_blocks_);
        each.account_->end_promise(each.promised_blocks_);
        pool.quota->whole().put_back(each.amount_);
        pool.quota->whole().end_in_flight(each.in_flight_blocks_);
    }
}

DiskUse::Owner& DiskUse::owner(PoolOwner whose) {
    OfPool& pool = pools_[whose.pool];
    const auto found = pool.owners.find(whose.owner);
    if (found != pool.owners.end()) return found->second;
    const auto made = pool.owners.emplace(whose.owner, Owner()).first;
    made->second.name_ = made->first;
    made->second.pool_ = &pool;
    made->second.account_ = &pool.quota->account_of(whose.owner);
    return made->second;
}

store::PoolShares DiskUse::shares() const {
    store::PoolShares shares;
    for (const auto& [id, pool] : pools_) {
        for (const auto& [name, each] : pool.owners) {
            if (each.amount_.is_none()) continue;
            shares[id][name] = {.blocks = each.amount_.blocks, .objects = each.amount_.objects};
        }
    }
    return shares;
}

namespace {

DiskUse::Verdict of_owner(QuotaAccount::Verdict verdict) {
    switch (verdict) {
        case QuotaAccount::Verdict::kTaken: break;
        case QuotaAccount::Verdict::kTooManyBlocks: return DiskUse::Verdict::kTooManyBlocks;
        case QuotaAccount::Verdict::kTooManyObjects: return DiskUse::Verdict::kTooManyObjects;
    }
    return DiskUse::Verdict::kTaken;
}

}  // namespace

DiskUse::Verdict DiskUse::check(const Owner& owner, Amount amount) const {
    const Verdict verdict = of_owner(owner.account_->check(amount));
    if (verdict != Verdict::kTaken) return verdict;
    const bool fits_pool = owner.whole().check(amount) == QuotaAccount::Verdict::kTaken;
    return fits_pool ? Verdict::kTaken : Verdict::kPoolIsFull;
}

DiskUse::Verdict DiskUse::take(Owner& owner, Amount amount, Scope scope) {
    const Verdict taken = of_owner(owner.account_->take(amount));
    if (taken != Verdict::kTaken) return taken;
    const bool in_pool = scope == Scope::kPoolAndOwner;
    if (in_pool && owner.pool_->quota->whole().take(amount) != QuotaAccount::Verdict::kTaken) {
        owner.account_->put_back(amount);
        return Verdict::kPoolIsFull;
    }
    owner.amount_.blocks += amount.blocks;
    owner.amount_.objects += amount.objects;
    return Verdict::kTaken;
}

void DiskUse::add(Owner& owner, Amount amount) {
    owner.amount_.blocks += amount.blocks;
    owner.amount_.objects += amount.objects;
    owner.account_->add(amount);
    owner.pool_->quota->whole().add(amount);
}

void DiskUse::put_back(Owner& owner, Amount amount, Scope scope) {
    owner.amount_.blocks -= amount.blocks;
    owner.amount_.objects -= amount.objects;
    owner.account_->put_back(amount);
    if (scope == Scope::kPoolAndOwner) owner.pool_->quota->whole().put_back(amount);
}

bool DiskUse::has_limit(const Owner& owner) const {
    return owner.account_->limit().blocks != QuotaAccount::kUnlimited ||
           owner.whole().limit().blocks != QuotaAccount::kUnlimited;
}

DiskUse::Verdict DiskUse::take_in_flight(Owner& owner, std::uint64_t blocks) {
    const Verdict taken = of_owner(owner.account_->take_in_flight(blocks));
    if (taken != Verdict::kTaken) return taken;
    QuotaAccount& whole = owner.pool_->quota->whole();
    if (whole.take_in_flight(blocks) != QuotaAccount::Verdict::kTaken) {
        owner.account_->end_in_flight(blocks);
        return Verdict::kPoolIsFull;
    }
    owner.in_flight_blocks_ += blocks;
    return Verdict::kTaken;
}

void DiskUse::settle_in_flight(Owner& owner, std::uint64_t blocks) {
    owner.account_->settle_in_flight(blocks);
    owner.pool_->quota->whole().settle_in_flight(blocks);
    owner.in_flight_blocks_ -= blocks;
    owner.amount_.blocks += blocks;
}

void DiskUse::unsettle_in_flight(Owner& owner, std::uint64_t blocks) {
    owner.account_->unsettle_in_flight(blocks);
    owner.pool_->quota->whole().unsettle_in_flight(blocks);
    owner.in_flight_blocks_ += blocks;
    owner.amount_.blocks -= blocks;
}

void DiskUse::end_in_flight(Owner& owner, std::uint64_t blocks) {
    owner.account_->end_in_flight(blocks);
    owner.pool_->quota->whole().end_in_flight(blocks);
    owner.in_flight_blocks_ -= blocks;
}

bool DiskUse::promise(Owner& owner, std::uint64_t blocks) {
    if (!owner.account_->promise(blocks)) return false;
    owner.promised_blocks_ += blocks;
    return true;
}

void DiskUse::promise_again(Owner& owner, std::uint64_t blocks) {
    owner.account_->add_promise(blocks);
    owner.promised_blocks_ += blocks;
}

void DiskUse::end_promise(Owner& owner, std::uint64_t blocks) {
    owner.account_->end_promise(blocks);
    owner.promised_blocks_ -= blocks;
}

}  // namespace fopd::objects

#include "objects/disk_use.h"

#include <utility>

namespace fopd::objects {

DiskUse::DiskUse(const store::OwnerShares& counted) {
    join(std::make_shared<PoolQuota>());
    for (const auto& [name, share] : counted) {
        const Amount amount{.blocks = share.blocks, .objects = share.objects};
        Owner& each = owner(name);
        each.amount_ = amount;
        each.account_->add(amount);
        quota_->whole().add(amount);
    }
}

void DiskUse::join(std::shared_ptr<PoolQuota> quota) {
    if (quota == quota_) return;
    leave();
    quota_ = std::move(quota);
    for (auto& [name, each] : owners_) {
        each.account_ = &quota_->account_of(name);
        each.account_->add(each.amount_);
        quota_->whole().add(each.amount_);
    }
}

void DiskUse::leave() {
    for (auto& [name, each] : owners_) {
        each.account_->put_back(each.amount_);
        quota_->whole().put_back(each.amount_);
    }
}

DiskUse::Owner& DiskUse::owner(std::string_view name) {
    const auto found = owners_.find(name);
    if (found != owners_.end()) return found->second;
    const auto made = owners_.emplace(name, Owner()).first;
    made->second.name_ = made->first;
    made->second.account_ = &quota_->account_of(name);
    return made->second;
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
    const bool fits_pool = quota_->whole().check(amount) == QuotaAccount::Verdict::kTaken;
    return fits_pool ? Verdict::kTaken : Verdict::kPoolIsFull;
}

DiskUse::Verdict DiskUse::take(Owner& owner, Amount amount, Scope scope) {
    const Verdict taken = of_owner(owner.account_->take(amount));
    if (taken != Verdict::kTaken) return taken;
    const bool in_pool = scope == Scope::kPoolAndOwner;
    if (in_pool && quota_->whole().take(amount) != QuotaAccount::Verdict::kTaken) {
        owner.account_->put_back(amount);
        return Verdict::kPoolIsFull;
    }
    owner.amount_.blocks += amount.blocks;
    owner.amount_.objects += amount.objects;
    return Verdict::kTaken;
}

void DiskUse::put_back(Owner& owner, Amount amount, Scope scope) {
    owner.amount_.blocks -= amount.blocks;
    owner.amount_.objects -= amount.objects;
    owner.account_->put_back(amount);
    if (scope == Scope::kPoolAndOwner) quota_->whole().put_back(amount);
}

}  // namespace fopd::objects

#include "objects/pool_quota.h"

#include <algorithm>
#include <memory>
#include <span>

#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::objects {

bool QuotaAccount::Number::take(std::uint64_t amount) {
    if (amount == 0) return true;
    const std::uint64_t most = limit.load(std::memory_order_relaxed);
    std::uint64_t now = used.load(std::memory_order_relaxed);
    do {
        if (now > most || amount > most - now) return false;
    } while (!used.compare_exchange_weak(now, now + amount, std::memory_order_relaxed));
    return true;
}

bool QuotaAccount::Number::fits(std::uint64_t amount) const {
    const std::uint64_t most = limit.load(std::memory_order_relaxed);
    const std::uint64_t now = used.load(std::memory_order_relaxed);
    return amount == 0 || (now <= most && amount <= most - now);
}

QuotaAccount::Verdict QuotaAccount::check(Amount amount) const {
    if (!blocks_.fits(amount.blocks)) return Verdict::kTooManyBlocks;
    if (!objects_.fits(amount.objects)) return Verdict::kTooManyObjects;
    return Verdict::kTaken;
}

QuotaAccount::Verdict QuotaAccount::take(Amount amount) {
    if (!blocks_.take(amount.blocks)) return Verdict::kTooManyBlocks;
    if (objects_.take(amount.objects)) return Verdict::kTaken;
    put_back({.blocks = amount.blocks});
    return Verdict::kTooManyObjects;
}

void QuotaAccount::add(Amount amount) {
    blocks_.used.fetch_add(amount.blocks, std::memory_order_relaxed);
    objects_.used.fetch_add(amount.objects, std::memory_order_relaxed);
}

void QuotaAccount::put_back(Amount amount) {
    const auto blocks = blocks_.used.fetch_sub(amount.blocks, std::memory_order_relaxed);
    const auto objects = objects_.used.fetch_sub(amount.objects, std::memory_order_relaxed);
    ENSURE(blocks >= amount.blocks);
    ENSURE(objects >= amount.objects);
}

QuotaAccount::Verdict QuotaAccount::take_in_flight(std::uint64_t blocks) {
    if (!blocks_.take(blocks)) return Verdict::kTooManyBlocks;
    in_flight_blocks_.fetch_add(blocks, std::memory_order_relaxed);
    return Verdict::kTaken;
}

void QuotaAccount::add_in_flight(std::uint64_t blocks) {
    blocks_.used.fetch_add(blocks, std::memory_order_relaxed);
    in_flight_blocks_.fetch_add(blocks, std::memory_order_relaxed);
}

void QuotaAccount::settle_in_flight(std::uint64_t blocks) {
    const auto before = in_flight_blocks_.fetch_sub(blocks, std::memory_order_relaxed);
    ENSURE(before >= blocks);
}

void QuotaAccount::unsettle_in_flight(std::uint64_t blocks) {
    in_flight_blocks_.fetch_add(blocks, std::memory_order_relaxed);
}

void QuotaAccount::end_in_flight(std::uint64_t blocks) {
    settle_in_flight(blocks);
    put_back({.blocks = blocks});
}

bool QuotaAccount::promise(std::uint64_t blocks) {
    if (blocks == 0) return true;
    const std::uint64_t limit = blocks_.limit.load(std::memory_order_relaxed);
    const std::uint64_t used = blocks_.used.load(std::memory_order_relaxed);
    const std::uint64_t stored = used - std::min(used, in_flight_blocks());
    if (stored > limit) return false;
    std::uint64_t now = promised_blocks_.load(std::memory_order_relaxed);
    do {
        if (now + blocks < now || now + blocks > limit - stored) return false;
    } while (!promised_blocks_.compare_exchange_weak(now, now + blocks, std::memory_order_relaxed));
    return true;
}

void QuotaAccount::add_promise(std::uint64_t blocks) {
    promised_blocks_.fetch_add(blocks, std::memory_order_relaxed);
}

void QuotaAccount::end_promise(std::uint64_t blocks) {
    const auto before = promised_blocks_.fetch_sub(blocks, std::memory_order_relaxed);
    ENSURE(before >= blocks);
}

PoolQuota::~PoolQuota() {
    for (auto& bucket : buckets_) {
        std::unique_ptr<Entry> first(bucket.load());
        while (first) first.reset(first->next);
    }
}

std::size_t PoolQuota::bucket_of(std::string_view owner) {
    return core::crc32c(std::as_bytes(std::span(owner))) % kBucketCount;
}

PoolQuota::Entry* PoolQuota::find(Entry* first, std::string_view owner) {
    Entry* entry = first;
    while (entry != nullptr && entry->owner != owner) entry = entry->next;
    return entry;
}

QuotaAccount& PoolQuota::account_of(std::string_view owner) {
    auto& bucket = buckets_[bucket_of(owner)];
    Entry* first = bucket.load(std::memory_order_acquire);
    if (Entry* const known = find(first, owner)) return known->account;
    auto made = std::make_unique<Entry>(owner);
    for (;;) {
        made->next = first;
        if (bucket.compare_exchange_weak(first, made.get(), std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
            return made.release()->account;
        }
        if (Entry* const known = find(first, owner)) return known->account;
    }
}

const QuotaAccount& PoolQuota::look_at(std::string_view owner) const {
    const Entry* const known =
        find(buckets_[bucket_of(owner)].load(std::memory_order_acquire), owner);
    return known == nullptr ? unused_ : known->account;
}

std::vector<PoolQuota::Owner> PoolQuota::owners() const {
    constexpr Amount kNoLimit{.blocks = QuotaAccount::kUnlimited,
                              .objects = QuotaAccount::kUnlimited};
    std::vector<Owner> owners;
    for (const auto& bucket : buckets_) {
        for (Entry* entry = bucket.load(std::memory_order_acquire); entry != nullptr;
             entry = entry->next) {
            QuotaAccount& account = entry->account;
            if (account.used().is_none() && account.limit() == kNoLimit) continue;
            owners.push_back({.name = entry->owner, .account = &account});
        }
    }
    std::ranges::sort(owners, {}, &Owner::name);
    return owners;
}

}  // namespace fopd::objects

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::objects {

// An amount of storage: blocks of data, and a number of objects. Uploads count as objects.
struct Amount {
    std::uint64_t blocks = 0;
    std::uint64_t objects = 0;

    bool is_none() const { return blocks == 0 && objects == 0; }
    friend bool operator==(const Amount&, const Amount&) = default;
};

// The use of one owner (or of all) on all disks of a pool, and its limit. All localities update the
// same number, so the limit is never exceeded, and no request is refused that fits. Any thread.
class QuotaAccount {
public:
    static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

    void set_limit(Amount limit) {
        blocks_.limit.store(limit.blocks, std::memory_order_relaxed);
        objects_.limit.store(limit.objects, std::memory_order_relaxed);
    }
    Amount limit() const {
        return {.blocks = blocks_.limit.load(std::memory_order_relaxed),
                .objects = objects_.limit.load(std::memory_order_relaxed)};
    }
    // What is stored, and what writes in flight will add.
    Amount used() const {
        return {.blocks = blocks_.used.load(std::memory_order_relaxed),
                .objects = objects_.used.load(std::memory_order_relaxed)};
    }

    enum class Verdict : std::uint8_t { kTaken, kTooManyBlocks, kTooManyObjects };
    // Takes all or nothing. An amount of zero is always granted, also above a limit that was
    // lowered.
    Verdict take(Amount amount);
    // Returns what take() would return now, and takes nothing.
    Verdict check(Amount amount) const;
    // Adds an amount that exists already, whatever the limit is.
    void add(Amount amount);
    // REQUIRES: the amount was taken or added.
    void put_back(Amount amount);

    // Takes blocks that a write in flight will add. All or nothing, like take().
    Verdict take_in_flight(std::uint64_t blocks);
    // Takes them whatever the limit is.
    void add_in_flight(std::uint64_t blocks);
    // The blocks are stored now, and stay taken. REQUIRES: they were taken in flight.
    void settle_in_flight(std::uint64_t blocks);
    // Undoes settle_in_flight().
    void unsettle_in_flight(std::uint64_t blocks);
    // The blocks do not come. REQUIRES: they were taken in flight, and not settled.
    void end_in_flight(std::uint64_t blocks);
    std::uint64_t in_flight_blocks() const {
        return in_flight_blocks_.load(std::memory_order_relaxed);
    }

    // Promises blocks that an upload in progress will take later. Returns false, and promises
    // nothing, if these blocks, the blocks stored and the blocks promised already would exceed the
    // limit. Blocks of writes in flight do not count here, as the promises of uploads have them. A
    // promise does not count as use: it prevents other promises, but nothing else.
    bool promise(std::uint64_t blocks);
    // Promises the blocks whatever the limit is.
    void add_promise(std::uint64_t blocks);
    // REQUIRES: they were promised.
    void end_promise(std::uint64_t blocks);
    std::uint64_t promised_blocks() const {
        return promised_blocks_.load(std::memory_order_relaxed);
    }

private:
    struct Number {
        std::atomic<std::uint64_t> used = 0;
        std::atomic<std::uint64_t> limit = kUnlimited;

        bool take(std::uint64_t amount);
        bool fits(std::uint64_t amount) const;
    };
    Number blocks_;
    Number objects_;
    std::atomic<std::uint64_t> in_flight_blocks_ = 0;  // A part of those used.
    std::atomic<std::uint64_t> promised_blocks_ = 0;
};

// The use of a pool, in total and for each owner. Any thread.
class PoolQuota {
public:
    PoolQuota() = default;
    ~PoolQuota();
    PoolQuota(const PoolQuota&) = delete;
    PoolQuota& operator=(const PoolQuota&) = delete;

    QuotaAccount& whole() { return whole_; }
    // The account of an owner; never moves. An account is kept when its owner has nothing left, so
    // there is one for each owner since the start and for each one with a limit.
    QuotaAccount& account_of(std::string_view owner);
    // Likewise, for who only asks, and makes no account: a client may ask in any name. All owners
    // without an account share one, which has no use and no limit.
    const QuotaAccount& look_at(std::string_view owner) const;

    struct Owner {
        std::string_view name;
        QuotaAccount* account = nullptr;
    };
    // The owners that use something or have a limit, by name.
    std::vector<Owner> owners() const;

private:
    // Entries are only added, at the head of the list, so a reader needs no lock.
    struct Entry {
        explicit Entry(std::string_view name) : owner(name) {}
        const std::string owner;
        QuotaAccount account;
        Entry* next = nullptr;
    };
    static constexpr std::size_t kBucketCount = 256;

    static std::size_t bucket_of(std::string_view owner);
    static Entry* find(Entry* first, std::string_view owner);

    QuotaAccount whole_;
    const QuotaAccount unused_{};  // Of all owners without an account.
    std::array<std::atomic<Entry*>, kBucketCount> buckets_{};
};

}  // namespace fopd::objects

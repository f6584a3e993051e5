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

// What objects are, in blocks of data and by their number; uploads count as objects.
struct Amount {
    std::uint64_t blocks = 0;
    std::uint64_t objects = 0;

    bool is_none() const { return blocks == 0 && objects == 0; }
    friend bool operator==(const Amount&, const Amount&) = default;
};

// What somebody has on all disks of a pool, and the most it may have. One number that all
// localities count in, so that it is never passed, and nothing is refused that there is room for.
// Any thread.
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
    Amount used() const {
        return {.blocks = blocks_.used.load(std::memory_order_relaxed),
                .objects = objects_.used.load(std::memory_order_relaxed)};
    }

    enum class Verdict : std::uint8_t { kTaken, kTooManyBlocks, kTooManyObjects };
    // All of it or nothing. Nothing at all can be had always, also above a limit that was lowered.
    Verdict take(Amount amount);
    // What is there in any case.
    void add(Amount amount);
    // Requires: it was taken, or added.
    void put_back(Amount amount);

private:
    struct Number {
        std::atomic<std::uint64_t> used = 0;
        std::atomic<std::uint64_t> limit = kUnlimited;

        bool take(std::uint64_t amount);
    };
    Number blocks_;
    Number objects_;
};

// What a pool's objects have in all, and those of each owner. Any thread.
class PoolQuota {
public:
    PoolQuota() = default;
    ~PoolQuota();
    PoolQuota(const PoolQuota&) = delete;
    PoolQuota& operator=(const PoolQuota&) = delete;

    QuotaAccount& whole() { return whole_; }
    // An owner's, which stays where it is for as long as this lives. Those who own nothing any more
    // keep theirs: they are as many as have owned something since the start, and who has a limit.
    QuotaAccount& account_of(std::string_view owner);

    struct Owner {
        std::string_view name;
        QuotaAccount* account = nullptr;
    };
    // Those who have something or may not have all, by their names.
    std::vector<Owner> owners() const;

private:
    // Only ever put in front of the others, so that who looks needs no lock.
    struct Entry {
        explicit Entry(std::string_view name) : owner(name) {}
        const std::string owner;
        QuotaAccount account;
        Entry* next = nullptr;
    };
    static constexpr std::size_t kBucketCount = 256;

    static Entry* find(Entry* first, std::string_view owner);

    QuotaAccount whole_;
    std::array<std::atomic<Entry*>, kBucketCount> buckets_{};
};

}  // namespace fopd::objects

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "store/layered_index.h"
#include "store/name_key.h"
#include "store/name_sink.h"

namespace fopd::store {

struct NameOwner {
    Fid fid{};
    std::uint64_t version = 0;

    friend bool operator==(const NameOwner&, const NameOwner&) = default;
};

// A name in a pool, with its own copy of the text.
struct PoolName {
    PoolName(std::uint32_t in_pool, std::string_view text) : pool(in_pool), name(text) {}

    std::uint32_t pool;
    std::string name;

    NameRef ref() const { return {.pool = pool, .name = name}; }
    friend auto operator<=>(const PoolName&, const PoolName&) = default;
};

struct NamePage {
    std::vector<NameClaim> claims;
    bool end = false;  // There are no further claims.
};
// Merges the pages that NameShard::list() of all shards returned for the same listing.
NamePage merge_pages(std::vector<NamePage> pages, std::uint32_t count_max);

struct NameShardOptions {
    NameHead part{};
    // The memory for claims that are not durable yet. Above half of it reserve() makes
    // a checkpoint if none is in progress; above all of it reserve() waits for one; above twice of
    // it tell() does too.
    std::size_t overlay_bytes = 16UL << 20;
};

class NameShard;

// While it exists no other coroutine can reserve the name. It does not outlive its shard.
class ReservedName {
public:
    ReservedName(ReservedName&& other) noexcept;
    ReservedName(const ReservedName&) = delete;
    ReservedName& operator=(const ReservedName&) = delete;
    ReservedName& operator=(ReservedName&&) = delete;
    ~ReservedName();

    const std::optional<NameOwner>& owner() const { return owner_; }
    // The version for a claim that will own the name: higher than all versions told or given
    // before.
    std::uint64_t version() const { return version_; }

private:
    friend NameShard;
    struct State {
        explicit State(core::Reactor& reactor) : waiters(reactor), settled(reactor) {}
        core::WaitQueue waiters;
        core::WaitQueue settled;  // Woken for the holder when claims of the name have ended.
        // The owner that the holder knows, and the version that it will write.
        std::optional<NameOwner> owner{};
        std::uint64_t version = 0;
    };
    using Table = std::map<PoolName, State>;
    ReservedName(NameShard* shard, Table::iterator at) : shard_(shard), at_(at) {}

    NameShard* shard_;
    Table::iterator at_;
    std::optional<NameOwner> owner_;
    std::uint64_t version_ = 0;
};

// One shard of a node's names: which object has which name. An index of the claims in the objects'
// records, as the volumes tell them. To change a name, reserve it and write a record of the object;
// the shard learns of it when the volume tells the change. Claims that are lost here are told
// again.
//
// The state is the set of all claims, and the owner of a name follows from it; so the order in
// which disks tell their claims, and how often, does not matter. This needs one rule: **the owner's
// claim ends only when no other object claims the name** (see reserve_to_remove()). Otherwise an
// object that was replaced and is not removed yet would have the name again: an object A has name
// n; B replaces it; B is removed; a crash before A is removed; then A would be found as n.
//
// Lives on one reactor; others reach it by messages.
class NameShard final : public NameSink {
public:
    struct World {
        core::Reactor& reactor;
        const core::Clock& clock;
    };
    // World and index outlive it.
    NameShard(World world, Index& index, const NameShardOptions& options);
    NameShard(const NameShard&) = delete;
    NameShard& operator=(const NameShard&) = delete;

    // Called first. kInvalid: the index is of another shard; kCorrupt: it is not an index of names.
    // In both cases an empty index has to take its place.
    Result<void> open();

    // This and all functions that take a name: kInvalid if it is not a valid name. REQUIRES: its
    // hash selects this shard.
    Result<std::optional<NameOwner>> find(NameRef name);

    struct Listing {
        std::uint32_t pool = 0;
        std::string prefix{};
        std::string behind{};  // Only names after this one. Empty: all.
        std::uint32_t count_max = 1000;
    };
    // Names with their owners, in the order of their bytes. Each of them existed at some time
    // during the call. REQUIRES: count_max > 0.
    Task<Result<NamePage>> list(Listing listing);

    // -- changing the owner of a name --
    //
    // Reserve the name; write the record of the object that claims it, with the reservation's
    // version, or of the object that gives it up; release the reservation after Volume::finish().
    // Several names are reserved in the order of reserved_before().

    // First come, first served; kTimedOut, kCancelled. The caller bounds the number of waiters.
    Task<Result<ReservedName>> reserve(PoolName name, core::WaitOptions wait);
    // Reserves a name that its owner gives up, because it is removed or renamed. Waits also until
    // the objects that the owner replaced are removed. kNotFound: no object has the name.
    Task<Result<ReservedName>> reserve_to_remove(PoolName name, core::WaitOptions wait);

    // -- objects that were replaced, and have to be removed --

    struct Replaced {
        std::optional<NameClaim> behind{};
        std::uint32_t count_max = 100;
    };
    Task<Result<NamePage>> replaced(Replaced which);
    // Counts replaced objects, and calls of look_at_replaced_again(). Code that removes replaced
    // objects reads the count, looks at all of them, then waits until the count is higher.
    std::uint64_t replaced_count() const { return replaced_count_; }
    Task<Result<void>> wait_replaced(std::uint64_t known_count, core::WaitOptions wait);
    // Whether the object was replaced under a reservation of this life, whose holder knew it as the
    // owner. Otherwise the owner may not have known of it, for example because its disk was
    // missing.
    bool was_replaced_knowingly(const NameClaim& claim) const {
        return knowingly_replaced_.contains(claim.fid);
    }
    // Replaced objects that could not be removed before may be removable now: wakes
    // wait_replaced().
    void look_at_replaced_again();

    // -- NameSink --

    Task<Result<std::uint64_t>> known(devices::DiskId disk) override;
    Task<Result<void>> forget(Origin origin) override;
    Task<Result<void>> tell(const NameChanges* changes) override;
    Task<Result<void>> keep(Kept kept) override;
    Task<Result<ClaimPage>> claims(Slot slot, ClaimCursor from) override;
    Task<Result<void>> remove_known(std::vector<NameClaim>* claims) override;

private:
    friend ReservedName;
    struct Walk;

    Result<void> check(NameRef name) const;
    Result<std::optional<NameOwner>> look_up(NameRef name);
    Result<bool> has(const NameKey& key);
    Result<bool> has_rivals(NameRef name);
    Result<void> apply(const NameChange& change);
    Result<void> add(const NameClaim& claim);
    Result<void> drop(const NameClaim& claim);
    void note_if_known(const NameClaim& loser, const NameClaim& winner);
    Result<void> erase_if_there(const NameKey& key);
    void put(Bytes key, Bytes value);
    void erase(Bytes key);
    Result<void> fill_in(ReservedName& hold);
    void release(ReservedName::Table::iterator at);
    Task<Result<NamePage>> walk(Walk* walk);
    Result<bool> walk_on(Walk& walk);
    Task<Result<void>> make_room();
    Task<Result<void>> checkpoint();

    core::Reactor& reactor_;
    const core::Clock& clock_;
    const NameShardOptions options_;
    LayeredIndex index_;
    ValueBuffer value_;
    ReservedName::Table holds_;
    core::WaitQueue more_replaced_;
    std::uint64_t replaced_count_ = 0;
    std::set<Fid>
        knowingly_replaced_;     // Replaced by a holder that knew them; they still claim a name.
    std::uint64_t version_ = 0;  // The highest version told or given.

    // Changes are counted; the index has those up to kept_ durably.
    std::uint64_t changed_ = 0;
    std::uint64_t kept_ = 0;
    bool keeping_ = false;
    core::WaitQueue keeping_ended_;
};

}  // namespace fopd::store

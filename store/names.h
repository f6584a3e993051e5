#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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
// A page of all parts' names, of the pages that NameShard::list() gave for the same question.
NamePage merge_pages(std::vector<NamePage> pages, std::uint32_t count_max);

struct NameShardOptions {
    NameHead part{};
    // What is told may take so much memory before those who reserve names wait for it to be kept;
    // twice as much before those who tell do.
    std::size_t overlay_bytes = 16UL << 20;
};

class NameShard;

// Nobody else changes who has a name until this is destroyed. It does not outlive its shard.
class ReservedName {
public:
    ReservedName(ReservedName&& other) noexcept;
    ReservedName(const ReservedName&) = delete;
    ReservedName& operator=(const ReservedName&) = delete;
    ReservedName& operator=(ReservedName&&) = delete;
    ~ReservedName();

    const std::optional<NameOwner>& owner() const { return owner_; }
    // Of a claim that is to have the name: higher than any that was told or given.
    std::uint64_t version() const { return version_; }

private:
    friend NameShard;
    struct State {
        explicit State(core::Reactor& reactor) : waiters(reactor), settled(reactor) {}
        core::WaitQueue waiters;
        core::WaitQueue settled;  // Of the holder.
        // What the holder knows, and what it is to write.
        std::optional<NameOwner> owner{};
        std::uint64_t version = 0;
    };
    using Table = std::map<PoolName, State>;
    ReservedName(NameShard* shard, Table::iterator place) : shard_(shard), place_(place) {}

    NameShard* shard_;
    Table::iterator place_;
    std::optional<NameOwner> owner_;
    std::uint64_t version_ = 0;
};

// A node's names, or a part of them: which object has which name. It is an index of what the
// objects' own records claim, told by the volumes; who changes a name writes that record, under a
// hold, and nothing else. What is missing here is told again.
//
// The state is the set of all claims, and the owner of a name follows from it: it does not matter
// in which order, or how often, the disks tell theirs. One rule makes that enough: **a name is
// given up only when no other object claims it any more** (see reserve_to_leave()). Else an object
// that was replaced, and is not removed yet, would have the name again after a crash.
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

    // Before anything else. kInvalid: it was made for another part; kCorrupt: it is something else.
    // An empty index has to take its place.
    Result<void> open();

    // For all that names a name: kInvalid for what cannot be one. Requires: it is one of this part.

    Result<std::optional<NameOwner>> find(NameRef name);

    struct Listing {
        std::uint32_t pool = 0;
        std::string prefix{};
        std::string behind{};  // Only names after this one. Empty: all.
        std::uint32_t count_max = 1000;
    };
    // Names with their owners, by their bytes. Each was there at some time meanwhile. Requires:
    // they may be more than none.
    Task<Result<NamePage>> list(Listing listing);

    // -- changing who has a name. Under a hold, write the record of the object whose claim it is,
    //    with the hold's version, or of the one that goes; the volume tells when it is durable.
    //    Let go after Volume::finish(). Several names: in the order of reserved_before(). --

    // First come, first served; kTimedOut, kCancelled. As many wait as there are who do.
    Task<Result<ReservedName>> reserve(PoolName name, core::WaitOptions wait);
    // To take the name away from its owner, by removing it or by giving it another name. Waits too
    // until what the owner replaced is gone. kNotFound: nobody has the name.
    Task<Result<ReservedName>> reserve_to_leave(PoolName name, core::WaitOptions wait);

    // -- objects that were replaced: somebody removes them. --

    struct Replaced {
        std::optional<NameClaim> behind{};
        std::uint32_t count_max = 100;
    };
    Task<Result<NamePage>> replaced(Replaced which);
    // Ever, and how often they are to be looked at again; who has looked at all of them waits for
    // more than there were when it began.
    std::uint64_t replaced_count() const { return replaced_count_; }
    Task<Result<void>> wait_replaced(std::uint64_t known_count, core::WaitOptions wait);
    // Whoever has the name knew that it was this one's, and took it under a hold of this life. Of
    // others that is not known: their disk may have been missing then.
    bool was_replaced_knowingly(const NameClaim& claim) const {
        return knowingly_replaced_.contains(claim.fid);
    }
    // Some that could not be removed perhaps can be now.
    void look_at_replaced_again();

    // -- NameSink --

    Task<Result<std::uint64_t>> known(devices::DiskId disk) override;
    Task<Result<void>> forget(Origin origin) override;
    Task<Result<void>> tell(const NameChanges* changes) override;
    Task<Result<void>> keep(Kept kept) override;
    Task<Result<ClaimPage>> claims(Slot slot, ClaimPlace from) override;
    Task<Result<void>> leave_unknown(std::vector<NameClaim>* claims) override;

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
    void release(ReservedName::Table::iterator place);
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
    std::set<Fid> knowingly_replaced_;  // Of those that are still there.
    std::uint64_t version_ = 0;         // The highest that was told or given.

    // Changes are counted; up to kept_ they are in the index.
    std::uint64_t changed_ = 0;
    std::uint64_t kept_ = 0;
    bool keeping_ = false;
    core::WaitQueue keeping_ended_;
};

}  // namespace fopd::store

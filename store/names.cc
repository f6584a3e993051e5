#include "store/names.h"

#include <algorithm>
#include <iterator>

#include "core/ensure.h"

namespace fopd::store {

using Found = LayeredIndex::Found;

namespace {

NameRef ref_of(const NameClaim& claim) {
    return {.pool = claim.pool, .name = claim.name};
}

// Whether the claim comes before the other one in the order of keys.
bool outranks(const NameClaim& claim, const NameOwner& other) {
    if (claim.version != other.version) return claim.version > other.version;
    return claim.fid < other.fid;
}

}  // namespace

// A walk over the claims between two keys, a bounded number in a turn.
struct NameShard::Walk {
    NameKind kind;
    NameKey from;
    NameKey to;
    std::uint32_t count_max;
    enum class Which : std::uint8_t { kAll, kOwners } which;
    NamePage page{};

    // All claims of a kind.
    static Walk all_of(NameKind kind, std::uint32_t count_max) {
        return {.kind = kind,
                .from = NameKey::first_of(kind),
                .to = NameKey::last_of(kind),
                .count_max = count_max,
                .which = Which::kAll};
    }
    bool wants(const StoredClaim& claim) const {
        if (which == Which::kAll || page.claims.empty()) return true;
        return claim.name.name != page.claims.back().name;
    }
};

// Behind the last name of an unfinished page, that shard may have names that the page lacks; so the
// merged page ends at the first of these.
NamePage merge_pages(std::vector<NamePage> pages, std::uint32_t count_max) {
    NamePage merged{.claims = {}, .end = true};
    std::optional<std::string> seen_up_to;
    for (NamePage& page : pages) {
        if (!page.end) {
            ENSURE(!page.claims.empty());
            const std::string& last = page.claims.back().name;
            if (!seen_up_to || last < *seen_up_to) seen_up_to = last;
        }
        std::ranges::move(page.claims, std::back_inserter(merged.claims));
    }
    std::ranges::sort(merged.claims, {}, &NameClaim::name);
    auto behind = merged.claims.end();
    if (seen_up_to) {
        behind = std::ranges::upper_bound(merged.claims, *seen_up_to, {}, &NameClaim::name);
        merged.end = false;
    }
    if (behind - merged.claims.begin() > count_max) {
        behind = merged.claims.begin() + count_max;
        merged.end = false;
    }
    merged.claims.erase(behind, merged.claims.end());
    return merged;
}

// -- reservations --

ReservedName::ReservedName(ReservedName&& other) noexcept
    : shard_(std::exchange(other.shard_, nullptr)),
      at_(other.at_),
      owner_(other.owner_),
      version_(other.version_) {}

ReservedName::~ReservedName() {
    if (shard_ != nullptr) shard_->release(at_);
}

NameShard::NameShard(World world, Index& index, const NameShardOptions& options)
    : reactor_(world.reactor),
      clock_(world.clock),
      options_(options),
      index_(index),
      more_replaced_(world.reactor),
      keeping_ended_(world.reactor) {
    ENSURE(options.part.shard < options.part.shard_count);
}

Result<void> NameShard::open() {
    const ReleaseAtEnd release(index_);
    changed_ = kept_ = index_.applied();
    const auto value = index_.get(NameKey::head());
    if (!value) return std::unexpected(value.error());
    if (!*value && index_.figures().entry_count > 0) {
        return std::unexpected(Error{.code = Errc::kCorrupt, .context = "an index of no names"});
    }
    if (!*value) {
        put(NameKey::head(), write_name_head(value_, options_.part));
        return {};
    }
    const auto head = read_name_head(**value);
    if (!head) return std::unexpected(head.error());
    if (*head != options_.part) {
        return std::unexpected(
            Error{.code = Errc::kInvalid, .context = "index of another part of the names"});
    }
    return {};
}

Result<void> NameShard::check(NameRef name) const {
    const Result<void> checked = check_name(name.name);
    if (checked) ENSURE(shard_of(name, options_.part.shard_count) == options_.part.shard);
    return checked;
}

Task<Result<ReservedName>> NameShard::reserve(PoolName name, core::WaitOptions wait) {
    const Result<void> checked = check(name.ref());
    if (!checked) co_return std::unexpected(checked.error());
    const auto room = co_await make_room();
    if (!room) co_return std::unexpected(room.error());
    const auto [at, is_free] = holds_.try_emplace(std::move(name), reactor_);
    if (!is_free) {
        // The holder hands the reservation on, and the entry of the table stays.
        const auto handed = co_await at->second.waiters.wait(wait);
        if (!handed) co_return std::unexpected(handed.error());
    }
    ReservedName hold(this, at);
    const Result<void> filled = fill_in(hold);
    if (!filled) co_return std::unexpected(filled.error());
    co_return std::move(hold);
}

Task<Result<ReservedName>> NameShard::reserve_to_remove(PoolName name, core::WaitOptions wait) {
    auto hold = co_await reserve(std::move(name), wait);
    if (!hold) co_return std::unexpected(hold.error());
    for (;;) {
        if (!hold->owner_) {
            co_return std::unexpected(
                Error{.code = Errc::kNotFound, .context = "no object has the name"});
        }
        const auto rivals = has_rivals(hold->at_->first.ref());
        if (!rivals) co_return std::unexpected(rivals.error());
        if (!*rivals) break;
        const auto settled = co_await hold->at_->second.settled.wait(wait);
        if (!settled && settled.error().code == Errc::kTimedOut) {
            co_return std::unexpected(
                Error{.code = Errc::kTimedOut,
                      .context = "an object that the name replaced is not removed yet"});
        }
        if (!settled) co_return std::unexpected(settled.error());
        const Result<void> filled = fill_in(*hold);
        if (!filled) co_return std::unexpected(filled.error());
    }
    co_return std::move(*hold);
}

// A version is at least the present time. This matters only between claims that did not know of
// each other, for example when a disk was missing while its name was given to another object by a
// rebuilt shard. A clock that was set back does no harm: the version is also higher than all known
// ones.
Result<void> NameShard::fill_in(ReservedName& hold) {
    const auto owner = look_up(hold.at_->first.ref());
    if (!owner) return std::unexpected(owner.error());
    const auto now = static_cast<std::uint64_t>(std::max<std::int64_t>(clock_.wall().unix_ns, 0));
    const std::uint64_t next = std::max(version_, *owner ? (*owner)->version : 0) + 1;
    hold.version_ = std::max(next, now);
    if (hold.version_ >= kNameVersionEnd) {
        return std::unexpected(Error{.code = Errc::kNoSpace, .context = "versions of names"});
    }
    hold.owner_ = *owner;
    version_ = hold.version_;
    hold.at_->second.owner = hold.owner_;
    hold.at_->second.version = hold.version_;
    return {};
}

void NameShard::release(ReservedName::Table::iterator at) {
    if (!at->second.waiters.wake_one()) holds_.erase(at);
}

// -- lookup --

Result<std::optional<NameOwner>> NameShard::find(NameRef name) {
    const Result<void> checked = check(name);
    if (!checked) return std::unexpected(checked.error());
    return look_up(name);
}

Result<std::optional<NameOwner>> NameShard::look_up(NameRef name) {
    const ReleaseAtEnd release(index_);
    const NameKey from = NameKey::first_claim(name);
    const NameKey to = NameKey::last_claim(name);
    const auto found = index_.past_erased(index_.at_or_after({.from = from, .to = to}));
    if (!found) return std::unexpected(found.error());
    if (*found == Found::kNothing) return std::nullopt;
    const auto claim = read_claim(NameKind::kClaim, index_.entry());
    if (!claim) return std::unexpected(claim.error());
    return NameOwner{.fid = claim->fid, .version = claim->version};
}

// Whether other objects than the owner claim the name.
Result<bool> NameShard::has_rivals(NameRef name) {
    const ReleaseAtEnd release(index_);
    const NameKey from = NameKey::first_claim(name);
    const NameKey to = NameKey::last_claim(name);
    unsigned count = 0;
    for (auto found = index_.at_or_after({.from = from, .to = to});; found = index_.next()) {
        if (!found) return std::unexpected(found.error());
        if (*found == Found::kNothing) return false;
        if (*found == Found::kEntry && ++count == 2) return true;
    }
}

Result<bool> NameShard::has(const NameKey& key) {
    const ReleaseAtEnd release(index_);
    const auto value = index_.get(key);
    if (!value) return std::unexpected(value.error());
    return value->has_value();
}

Task<Result<NamePage>> NameShard::list(Listing listing) {
    if (listing.prefix.size() > kObjectNameBytesMax ||
        listing.behind.size() > kObjectNameBytesMax) {
        co_return std::unexpected(Error{.code = Errc::kInvalid, .context = "name of an object"});
    }
    const NameRef prefix{.pool = listing.pool, .name = listing.prefix};
    const bool from_start = listing.behind < listing.prefix || listing.behind.empty();
    Walk which{.kind = NameKind::kClaim,
               .from = from_start
                           ? NameKey::first_with_prefix(NameKind::kClaim, prefix)
                           : NameKey::behind_name({.pool = listing.pool, .name = listing.behind}),
               .to = NameKey::last_with_prefix(NameKind::kClaim, prefix),
               .count_max = listing.count_max,
               .which = Walk::Which::kOwners};
    co_return co_await walk(&which);
}

Task<Result<NamePage>> NameShard::replaced(Replaced which) {
    Walk all = Walk::all_of(NameKind::kOutranked, which.count_max);
    if (which.behind) {
        all.from = NameKey::behind(NameKey::claim(NameKind::kOutranked, *which.behind));
    }
    co_return co_await walk(&all);
}

Task<Result<NamePage>> NameShard::walk(Walk* walk) {
    ENSURE(walk->count_max > 0);
    for (;;) {
        co_await reactor_.long_step();
        const auto more = walk_on(*walk);
        if (!more) co_return std::unexpected(more.error());
        if (!*more) co_return std::move(walk->page);
    }
}

// False when the page is full.
Result<bool> NameShard::walk_on(Walk& walk) {
    const ReleaseAtEnd release(index_);
    auto found = index_.at_or_after({.from = walk.from, .to = walk.to});
    for (std::uint32_t count = 1;; ++count) {
        if (!found) return std::unexpected(found.error());
        if (*found == Found::kNothing) {
            walk.page.end = true;
            return false;
        }
        if (*found == Found::kEntry) {
            const auto claim = read_claim(walk.kind, index_.entry());
            if (!claim) return std::unexpected(claim.error());
            if (walk.wants(*claim)) {
                if (walk.page.claims.size() == walk.count_max) return false;
                walk.page.claims.push_back(claim->claim());
            }
        }
        if (count == kEntriesATurn || *found == Found::kErasedKeys) {
            const Bytes key = index_.entry().key;
            if (key.size() == kIndexKeyBytesMax) {
                return std::unexpected(
                    Error{.code = Errc::kCorrupt, .context = "long key in the index of names"});
            }
            walk.from = NameKey::behind(key);
            return true;
        }
        found = index_.next();
    }
}

Task<Result<void>> NameShard::wait_replaced(std::uint64_t known_count, core::WaitOptions wait) {
    while (replaced_count_ == known_count) {
        const auto woken = co_await more_replaced_.wait(wait);
        if (!woken) co_return woken;
    }
    co_return Result<void>{};
}

void NameShard::look_at_replaced_again() {
    ++replaced_count_;
    more_replaced_.wake_all();
}

// -- changes told by the volumes --

void NameShard::put(Bytes key, Bytes value) {
    index_.put(key, value);
    ++changed_;
}

void NameShard::erase(Bytes key) {
    index_.erase(key);
    ++changed_;
}

Result<void> NameShard::apply(const NameChange& change) {
    const NameClaim& claim = change.claim;
    const Result<void> checked = check(ref_of(claim));
    if (!checked) return checked;
    if (claim.version >= kNameVersionEnd) {
        return std::unexpected(Error{.code = Errc::kInvalid, .context = "version of a name"});
    }
    version_ = std::max(version_, claim.version);
    return change.kind == NameChange::Kind::kMade ? add(claim) : drop(claim);
}

// A claim that is not the owner's is also stored as kOutranked, so that replaced objects are found
// without a walk over all names.
Result<void> NameShard::add(const NameClaim& claim) {
    const auto owner = look_up(ref_of(claim));
    if (!owner) return std::unexpected(owner.error());
    const NameOwner added{.fid = claim.fid, .version = claim.version};
    if (*owner == added) return {};
    put(NameKey::claim(NameKind::kClaim, claim), {});
    if (!*owner) return {};
    NameClaim loser = claim;
    if (outranks(claim, **owner)) {
        loser.fid = (*owner)->fid;
        loser.version = (*owner)->version;
    }
    put(NameKey::claim(NameKind::kOutranked, loser), {});
    note_if_known(loser, claim);
    ++replaced_count_;
    more_replaced_.wake_all();
    return {};
}

void NameShard::note_if_known(const NameClaim& loser, const NameClaim& winner) {
    const auto hold = holds_.find(PoolName(winner.pool, winner.name));
    if (hold == holds_.end()) return;
    const NameOwner replaced{.fid = loser.fid, .version = loser.version};
    const bool is_known = hold->second.owner == replaced && hold->second.version == winner.version;
    if (is_known) knowingly_replaced_.insert(loser.fid);
}

Result<void> NameShard::drop(const NameClaim& claim) {
    const NameKey key = NameKey::claim(NameKind::kClaim, claim);
    const auto there = has(key);
    if (!there) return std::unexpected(there.error());
    if (!*there) return {};
    erase(key);
    knowingly_replaced_.erase(claim.fid);
    const Result<void> unmarked = erase_if_there(NameKey::claim(NameKind::kOutranked, claim));
    if (!unmarked) return unmarked;
    const auto owner = look_up(ref_of(claim));
    if (!owner) return std::unexpected(owner.error());
    if (*owner) {
        NameClaim first = claim;
        first.fid = (*owner)->fid;
        first.version = (*owner)->version;
        const Result<void> raised = erase_if_there(NameKey::claim(NameKind::kOutranked, first));
        if (!raised) return raised;
    }
    const auto hold = holds_.find(PoolName(claim.pool, claim.name));
    if (hold != holds_.end()) hold->second.settled.wake_all();
    return {};
}

Result<void> NameShard::erase_if_there(const NameKey& key) {
    const auto there = has(key);
    if (!there) return std::unexpected(there.error());
    if (*there) erase(key);
    return {};
}

Task<Result<void>> NameShard::tell(const NameChanges* changes) {
    for (const NameChange& change : *changes) {
        const Result<void> applied = apply(change);
        if (!applied) co_return applied;
    }
    if (index_.changed_bytes() <= 2 * options_.overlay_bytes) co_return Result<void>{};
    co_return co_await checkpoint();
}

Task<Result<std::uint64_t>> NameShard::known(devices::DiskId disk) {
    const ReleaseAtEnd release(index_);
    const auto value = index_.get(NameKey::disk(disk));
    if (!value) co_return std::unexpected(value.error());
    if (!*value) co_return 0;
    co_return read_known_seq(**value);
}

Task<Result<void>> NameShard::forget(Origin origin) {
    erase(NameKey::disk(origin.disk));
    Walk all = Walk::all_of(NameKind::kClaim, kEntriesATurn);
    for (bool end = false; !end;) {
        all.page = {};
        const auto page = co_await walk(&all);
        if (!page) co_return std::unexpected(page.error());
        NameChanges ended;
        for (const NameClaim& claim : page->claims) {
            if (claim.fid.slot() != origin.slot) continue;
            ended.push_back({.kind = NameChange::Kind::kEnded, .claim = claim});
        }
        end = page->end;
        if (!end) {
            all.from = NameKey::behind(NameKey::claim(NameKind::kClaim, page->claims.back()));
        }
        const auto told = co_await tell(&ended);
        if (!told) co_return told;
    }
    co_return Result<void>{};
}

Task<Result<void>> NameShard::keep(Kept kept) {
    put(NameKey::disk(kept.disk), write_known_seq(value_, kept.seq));
    co_return co_await checkpoint();
}

Task<Result<NameSink::ClaimPage>> NameShard::claims(Slot slot, ClaimCursor from) {
    Walk all = Walk::all_of(NameKind::kClaim, kEntriesATurn);
    if (from.behind) all.from = NameKey::behind(NameKey::claim(NameKind::kClaim, *from.behind));
    auto walked = co_await walk(&all);
    if (!walked) co_return std::unexpected(walked.error());
    ClaimPage page;
    page.end = walked->end;
    if (!walked->claims.empty()) page.next.behind = walked->claims.back();
    std::erase_if(walked->claims,
                  [slot](const NameClaim& claim) { return claim.fid.slot() != slot; });
    page.claims = std::move(walked->claims);
    co_return page;
}

Task<Result<void>> NameShard::remove_known(std::vector<NameClaim>* claims) {
    std::vector<NameClaim> unknown;
    for (NameClaim& claim : *claims) {
        const Result<void> checked = check(ref_of(claim));
        if (!checked) co_return checked;
        const auto known = has(NameKey::claim(NameKind::kClaim, claim));
        if (!known) co_return std::unexpected(known.error());
        if (!*known) unknown.push_back(std::move(claim));
    }
    *claims = std::move(unknown);
    co_return Result<void>{};
}

// reserve() waits, rather than tell(): no other coroutine depends on it yet.
Task<Result<void>> NameShard::make_room() {
    const bool is_full = index_.changed_bytes() > options_.overlay_bytes;
    if (!is_full && (keeping_ || index_.changed_bytes() * 2 <= options_.overlay_bytes)) {
        co_return Result<void>{};
    }
    const auto kept = co_await checkpoint();
    // While there is room a failed checkpoint is left to keep(), which reports it.
    if (!kept && index_.changed_bytes() > options_.overlay_bytes) co_return kept;
    co_return Result<void>{};
}

// Makes all changes so far durable in the index. Calls that come during a checkpoint wait for it;
// then one of them makes the next for all.
Task<Result<void>> NameShard::checkpoint() {
    const std::uint64_t wanted = changed_;
    while (kept_ < wanted) {
        if (keeping_) {
            // Without a deadline: the index answers.
            const core::WaitOptions wait{};
            const auto ended = co_await keeping_ended_.wait(wait);
            if (!ended) co_return ended;
            continue;
        }
        keeping_ = true;
        const std::uint64_t upto = changed_;
        const auto made = co_await index_.checkpoint(upto);
        keeping_ = false;
        if (made) kept_ = upto;
        keeping_ended_.wake_all();
        if (!made) co_return made;
    }
    co_return Result<void>{};
}

}  // namespace fopd::store

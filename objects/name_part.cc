#include "objects/name_part.h"

#include "core/remote_task.h"

namespace fopd::objects {

namespace {

constexpr Error kPartStopped{.code = Errc::kClosed, .context = "the server is stopping"};

}  // namespace

// -- the part --

Task<Result<NameHold>> NamePart::hold(Wanted wanted) {
    store::PoolName name = wanted.name;
    auto task = wanted.to_remove ? shard_.reserve_to_remove(std::move(wanted.name), wanted.wait)
                                 : shard_.reserve(std::move(wanted.name), wanted.wait);
    auto reserved = co_await std::move(task);
    if (!reserved) co_return std::unexpected(reserved.error());
    NameHold hold{.name = std::move(name), .version = reserved->version()};
    if (const auto& owner = reserved->owner()) {
        hold.owner = NamedObject{.fid = owner->fid, .version = owner->version};
    }
    holds_.emplace(hold.name, Held{.name = std::move(*reserved), .to_remove = wanted.to_remove});
    co_return hold;
}

void NamePart::let_go(const NameHold& hold) {
    const auto held = holds_.find(hold.name);
    if (held != holds_.end() && held->second.name.version() == hold.version) holds_.erase(held);
}

Task<Result<void>> NamePart::tell(const store::NameChanges* changes) {
    const auto told = co_await shard_.tell(changes);
    if (!told) co_return told;
    for (const store::NameChange& change : *changes) end_hold_of(change);
    co_return told;
}

// Ends the hold that the change was made under. The version of a hold is given to one claim only. A
// hold to leave a name has no more use once the owner's claim has ended, even if another change
// ended it.
void NamePart::end_hold_of(const store::NameChange& change) {
    const store::NameClaim& claim = change.claim;
    const auto held = holds_.find(store::PoolName(claim.pool, claim.name));
    if (held == holds_.end()) return;
    const store::ReservedName& name = held->second.name;
    const bool is_done = change.kind == store::NameChange::Kind::kMade
                             ? name.version() == claim.version
                             : held->second.to_remove && name.owner()->fid == claim.fid;
    if (is_done) holds_.erase(held);
}

// -- from a volume to a part elsewhere --

Task<Result<std::uint64_t>> DistantNames::known(devices::DiskId disk) {
    auto job = [this, disk] { return part_.shard().known(disk); };
    const auto known = co_await core::run_task_on<Result<std::uint64_t>>(here_, part_.reactor(),
                                                                         part_.gate(), job);
    if (!known) co_return std::unexpected(kPartStopped);
    co_return *known;
}

Task<Result<void>> DistantNames::forget(Origin origin) {
    auto job = [this, origin] { return part_.shard().forget(origin); };
    const auto forgotten =
        co_await core::run_task_on<Result<void>>(here_, part_.reactor(), part_.gate(), job);
    if (!forgotten) co_return std::unexpected(kPartStopped);
    co_return *forgotten;
}

Task<Result<void>> DistantNames::tell(const store::NameChanges* changes) {
    auto job = [this, changes] { return part_.tell(changes); };
    const auto told =
        co_await core::run_task_on<Result<void>>(here_, part_.reactor(), part_.gate(), job);
    if (!told) co_return std::unexpected(kPartStopped);
    co_return *told;
}

Task<Result<void>> DistantNames::keep(Kept kept) {
    auto job = [this, kept] { return part_.shard().keep(kept); };
    const auto done =
        co_await core::run_task_on<Result<void>>(here_, part_.reactor(), part_.gate(), job);
    if (!done) co_return std::unexpected(kPartStopped);
    co_return *done;
}

Task<Result<store::NameSink::ClaimPage>> DistantNames::claims(store::Slot slot, ClaimCursor from) {
    auto job = [this, slot, &from] { return part_.shard().claims(slot, std::move(from)); };
    auto page =
        co_await core::run_task_on<Result<ClaimPage>>(here_, part_.reactor(), part_.gate(), job);
    if (!page) co_return std::unexpected(kPartStopped);
    co_return std::move(*page);
}

Task<Result<void>> DistantNames::remove_known(std::vector<store::NameClaim>* claims) {
    auto job = [this, claims] { return part_.shard().remove_known(claims); };
    const auto left =
        co_await core::run_task_on<Result<void>>(here_, part_.reactor(), part_.gate(), job);
    if (!left) co_return std::unexpected(kPartStopped);
    co_return *left;
}

}  // namespace fopd::objects

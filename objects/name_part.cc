#include "objects/name_part.h"

#include <utility>

#include "core/remote_task.h"

namespace fopd::objects {

namespace {

constexpr Error kPartStopped{.code = Errc::kClosed, .context = "the server is stopping"};

}  // namespace

// -- the part --

Task<Result<NameHold>> NamePart::hold(Wanted wanted) {
    auto task = wanted.to_leave ? shard_.reserve_to_leave(std::move(wanted.name), wanted.wait)
                                : shard_.reserve(std::move(wanted.name), wanted.wait);
    auto reserved = co_await std::move(task);
    if (!reserved) co_return std::unexpected(reserved.error());
    NameHold hold{.version = reserved->version(), .key = ++keys_given_};
    if (const auto& owner = reserved->owner()) {
        hold.owner = NamedObject{.fid = owner->fid, .version = owner->version};
    }
    holds_.emplace(hold.key, std::move(*reserved));
    co_return hold;
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
    auto job = [this, changes] { return part_.shard().tell(changes); };
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

Task<Result<store::NameSink::ClaimPage>> DistantNames::claims(store::Slot slot, ClaimPlace from) {
    auto job = [this, slot, &from] { return part_.shard().claims(slot, std::move(from)); };
    auto page =
        co_await core::run_task_on<Result<ClaimPage>>(here_, part_.reactor(), part_.gate(), job);
    if (!page) co_return std::unexpected(kPartStopped);
    co_return std::move(*page);
}

Task<Result<void>> DistantNames::leave_unknown(std::vector<store::NameClaim>* claims) {
    auto job = [this, claims] { return part_.shard().leave_unknown(claims); };
    const auto left =
        co_await core::run_task_on<Result<void>>(here_, part_.reactor(), part_.gate(), job);
    if (!left) co_return std::unexpected(kPartStopped);
    co_return *left;
}

}  // namespace fopd::objects

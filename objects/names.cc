#include "objects/names.h"

#include <string>
#include <utility>

#include "core/cancel.h"
#include "core/ensure.h"
#include "core/remote.h"
#include "core/remote_task.h"
#include "store/name_key.h"

namespace fopd::objects {

namespace {

// The upper bits of a hold's key are the number of its part.
constexpr unsigned kPartShift = 48;

store::NameRef ref_of(const ObjectName& name) {
    return {.pool = name.pool, .name = name.name};
}

Result<std::optional<NamedObject>> named_object(
    const Result<std::optional<store::NameOwner>>& looked) {
    if (!looked) return std::unexpected(looked.error());
    const std::optional<store::NameOwner>& owner = *looked;
    if (!owner) return std::nullopt;
    return NamedObject{.fid = owner->fid, .version = owner->version};
}

constexpr Error kNamesStop{.code = Errc::kClosed, .context = "the server is stopping"};

}  // namespace

Names::Names(core::Reactor& here, std::vector<NamePart*> parts)
    : here_(here), parts_(std::move(parts)) {
    ENSURE(!parts_.empty());
}

std::uint32_t Names::part_of(const ObjectName& name) const {
    return store::shard_of(ref_of(name), static_cast<std::uint32_t>(parts_.size()));
}

Task<Result<std::optional<NamedObject>>> Names::find(ObjectName name) {
    NamePart& part = *parts_[part_of(name)];
    auto job = [&part, &name] { return part.shard().find(ref_of(name)); };
    if (&part.reactor() == &here_) co_return named_object(job());
    const auto looked = co_await core::run_on(here_, part.reactor(), job);
    co_return named_object(looked);
}

Task<Result<NameList>> Names::list(NameListRequest request) {
    std::vector<store::NamePage> pages;
    for (NamePart* const part : parts_) {
        auto job = [part, &request] {
            return part->shard().list({.pool = request.pool,
                                       .prefix = std::string(request.prefix),
                                       .behind = std::string(request.cursor),
                                       .count_max = request.count_max});
        };
        auto page = co_await core::run_task_on<Result<store::NamePage>>(here_, part->reactor(),
                                                                        part->gate(), job);
        if (!page) co_return std::unexpected(kNamesStop);
        if (!*page) co_return std::unexpected(page->error());
        pages.push_back(std::move(**page));
    }
    store::NamePage all = store::merge_pages(std::move(pages), request.count_max);
    NameList list{.entries = {}, .end = all.end};
    for (store::NameClaim& claim : all.claims) {
        list.entries.push_back({.name = std::move(claim.name), .fid = claim.fid});
    }
    co_return list;
}

Task<Result<NameHold>> Names::hold(ObjectName name, core::WaitOptions wait) {
    return hold_at(part_of(name), {store::PoolName(name.pool, name.name), false, wait});
}

Task<Result<NameHold>> Names::hold_to_leave(ObjectName name, core::WaitOptions wait) {
    return hold_at(part_of(name), {store::PoolName(name.pool, name.name), true, wait});
}

Task<Result<NameHold>> Names::hold_at(std::uint32_t number, NamePart::Wanted wanted) {
    NamePart& part = *parts_[number];
    const std::uint64_t part_bits = std::uint64_t{number} << kPartShift;
    if (&part.reactor() == &here_) {
        auto hold = co_await part.hold(std::move(wanted));
        if (hold) hold->key |= part_bits;
        co_return hold;
    }
    core::CancelSource never;
    core::CancelSource cancel;
    core::CancelSource& asked = wanted.wait.cancel != nullptr ? *wanted.wait.cancel : never;
    core::CancelThere forwarded(asked, here_, part.reactor(), cancel);
    wanted.wait.cancel = &cancel;
    auto job = [&part, &wanted] { return part.hold(std::move(wanted)); };
    const auto held =
        co_await core::run_task_on<Result<NameHold>>(here_, part.reactor(), part.gate(), job);
    co_await forwarded.end();
    if (!held) co_return std::unexpected(kNamesStop);
    if (!*held) co_return std::unexpected(held->error());
    NameHold hold = **held;
    hold.key |= part_bits;
    co_return hold;
}

Task<void> Names::let_go(NameHold hold) {
    NamePart& part = *parts_[hold.key >> kPartShift];
    const std::uint64_t key = hold.key & ((1ULL << kPartShift) - 1);
    auto job = [&part, key] { part.let_go(key); };
    if (&part.reactor() == &here_) {
        job();
        co_return;
    }
    co_await core::run_on(here_, part.reactor(), job);
}

bool Names::before(const ObjectName& one, const ObjectName& other) const {
    return store::reserved_before(ref_of(one), ref_of(other));
}

}  // namespace fopd::objects

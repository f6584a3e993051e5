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

NamePart& Names::part_with(store::NameRef name) const {
    return *parts_[store::shard_of(name, static_cast<std::uint32_t>(parts_.size()))];
}

Task<Result<std::optional<NamedObject>>> Names::find(ObjectName name) {
    NamePart& part = part_with(ref_of(name));
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
    return hold_at_part({store::PoolName(name.pool, name.name), false, wait});
}

Task<Result<NameHold>> Names::hold_to_remove(ObjectName name, core::WaitOptions wait) {
    return hold_at_part({store::PoolName(name.pool, name.name), true, wait});
}

Task<Result<NameHold>> Names::hold_at_part(NamePart::Wanted wanted) {
    NamePart& part = part_with(wanted.name.ref());
    if (&part.reactor() == &here_) co_return co_await part.hold(std::move(wanted));
    core::CancelSource never;
    core::CancelSource cancel;
    core::CancelSource& asked = wanted.wait.cancel != nullptr ? *wanted.wait.cancel : never;
    core::CancelThere forwarded(asked, here_, part.reactor(), cancel);
    wanted.wait.cancel = &cancel;
    auto job = [&part, &wanted] { return part.hold(std::move(wanted)); };
    auto held =
        co_await core::run_task_on<Result<NameHold>>(here_, part.reactor(), part.gate(), job);
    co_await forwarded.end();
    if (!held) co_return std::unexpected(kNamesStop);
    co_return std::move(*held);
}

Task<void> Names::let_go(NameHold hold) {
    NamePart& part = part_with(hold.name.ref());
    auto job = [&part, &hold] { part.let_go(hold); };
    if (&part.reactor() == &here_) {
        job();
        co_return;
    }
    co_await core::run_on(here_, part.reactor(), job);
}

void Names::let_go_after_change(const NameHold& hold) {
    NamePart& part = part_with(hold.name.ref());
    if (&part.reactor() == &here_) part.let_go(hold);
}

bool Names::before(const ObjectName& one, const ObjectName& other) const {
    return store::reserved_before(ref_of(one), ref_of(other));
}

}  // namespace fopd::objects

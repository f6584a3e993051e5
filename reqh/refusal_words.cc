#include "reqh/refusal_words.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/ensure.h"
#include "fop/range.h"

namespace fopd::reqh {

Refusal RefusalWords::composed(fop::Status status, int length) const {
    ENSURE(length > 0);
    const auto size = std::min(static_cast<std::size_t>(length), words_.size() - 1);
    return {.status = status, .words = std::string_view(words_.data(), size)};
}

Refusal RefusalWords::medium_missing(std::string_view what, std::string_view disks) {
    const int length = std::snprintf(
        words_.data(), words_.size(), "%.*s%s%.*s", static_cast<int>(what.size()), what.data(),
        disks.empty() ? "" : ": ", static_cast<int>(disks.size()), disks.data());
    return composed(fop::Status::kMediumMissing, length);
}

Refusal RefusalWords::over_quota(const objects::DiskUse::Owner& owner, std::string_view pool,
                                 objects::Amount wanted, objects::DiskUse::Verdict verdict) {
    const bool of_pool = verdict == objects::DiskUse::Verdict::kPoolIsFull;
    return over_quota({.owner = of_pool ? kAllOwners : owner.name(),
                       .pool = pool,
                       .account = of_pool ? &owner.whole() : &owner.account(),
                       .lacks_objects = verdict == objects::DiskUse::Verdict::kTooManyObjects},
                      wanted);
}

Refusal RefusalWords::over_quota(const FullAccount& full, objects::Amount wanted) {
    const auto number = [&full](objects::Amount amount) {
        return static_cast<unsigned long long>(
            full.lacks_objects ? amount.objects : amount.blocks * fop::kBlockBytes);
    };
    const int length = std::snprintf(
        words_.data(), words_.size(),
        "quota of %.*s in pool %.*s: %llu of %llu %s used, %llu more wanted",
        static_cast<int>(full.owner.size()), full.owner.data(), static_cast<int>(full.pool.size()),
        full.pool.data(), number(full.account->used()), number(full.account->limit()),
        full.lacks_objects ? "objects" : "bytes", number(wanted));
    return composed(fop::Status::kQuota, length);
}

Refusal RefusalWords::block_damaged(store::Fid fid, std::uint64_t block) {
    const int length = std::snprintf(
        words_.data(), words_.size(), "block %llu of object %016llx%016llx is damaged",
        static_cast<unsigned long long>(block), static_cast<unsigned long long>(fid.high),
        static_cast<unsigned long long>(fid.low));
    return composed(fop::Status::kCorrupt, length);
}

Refusal RefusalWords::no_such_name(std::string_view pool) {
    const int length =
        std::snprintf(words_.data(), words_.size(), "no object has that name in pool %.*s",
                      static_cast<int>(pool.size()), pool.data());
    return composed(fop::Status::kNotFound, length);
}

Refusal RefusalWords::denied(std::string why) {
    denial_ = std::move(why);
    return {.status = fop::Status::kDenied, .words = denial_};
}

}  // namespace fopd::reqh

#include "objects/name_router.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "core/ensure.h"
#include "store/name_key.h"

namespace fopd::objects {

NameRouter::NameRouter(std::vector<store::NameSink*> parts) : parts_(std::move(parts)) {
    ENSURE(!parts_.empty());
}

Task<Result<std::uint64_t>> NameRouter::known(devices::DiskId disk) {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (store::NameSink* const part : parts_) {
        const auto known = co_await part->known(disk);
        if (!known) co_return known;
        least = std::min(least, *known);
    }
    co_return least;
}

Task<Result<void>> NameRouter::forget(Origin origin) {
    for (store::NameSink* const part : parts_) {
        const auto forgotten = co_await part->forget(origin);
        if (!forgotten) co_return forgotten;
    }
    co_return Result<void>{};
}

Task<Result<void>> NameRouter::tell(const store::NameChanges* changes) {
    const auto count = static_cast<std::uint32_t>(parts_.size());
    std::vector<store::NameChanges> divided(count);
    for (const store::NameChange& change : *changes) {
        const store::NameRef name{.pool = change.claim.pool, .name = change.claim.name};
        divided[store::shard_of(name, count)].push_back(change);
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        if (divided[i].empty()) continue;
        const auto told = co_await parts_[i]->tell(&divided[i]);
        if (!told) co_return told;
    }
    co_return Result<void>{};
}

Task<Result<void>> NameRouter::keep(Kept kept) {
    for (store::NameSink* const part : parts_) {
        const auto done = co_await part->keep(kept);
        if (!done) co_return done;
    }
    co_return Result<void>{};
}

Task<Result<store::NameSink::ClaimPage>> NameRouter::claims(store::Slot slot, ClaimCursor from) {
    const std::uint32_t part = from.part;
    ENSURE(part < parts_.size());
    from.part = 0;
    auto page = co_await parts_[part]->claims(slot, std::move(from));
    if (!page) co_return std::unexpected(page.error());
    page->next.part = part;
    if (page->end && part + 1 < parts_.size()) {
        page->next = {.part = part + 1};
        page->end = false;
    }
    co_return std::move(*page);
}

Task<Result<void>> NameRouter::remove_known(std::vector<store::NameClaim>* claims) {
    const auto count = static_cast<std::uint32_t>(parts_.size());
    std::vector<std::vector<store::NameClaim>> divided(count);
    for (store::NameClaim& claim : *claims) {
        const store::NameRef name{.pool = claim.pool, .name = claim.name};
        divided[store::shard_of(name, count)].push_back(std::move(claim));
    }
    claims->clear();
    for (std::uint32_t i = 0; i < count; ++i) {
        if (divided[i].empty()) continue;
        const auto left = co_await parts_[i]->remove_known(&divided[i]);
        if (!left) co_return left;
        std::ranges::move(divided[i], std::back_inserter(*claims));
    }
    co_return Result<void>{};
}

}  // namespace fopd::objects

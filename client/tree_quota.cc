// SPDX-License-Identifier: BSD-2-Clause
#include "client/tree_quota.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/printable.h"
#include "fop/name.h"
#include "fop/range.h"

namespace fopd::client {

namespace {

// The space of so many bytes on a disk: whole blocks.
std::uint64_t blocks_bytes(std::uint64_t size_bytes) {
    return (size_bytes + fop::kBlockBytes - 1) / fop::kBlockBytes * fop::kBlockBytes;
}

// What all files of a tree take, without files whose upload has begun: the server counts these
// already.
Task<WantedSpace> sum_of_files(ObjectRun* run, const LocalTree* tree, const PutJournal* journal) {
    LocalWalk walk(*tree, fop::kObjectNameBytesMax);
    auto job = [&walk] { return walk.next(); };
    WantedSpace sum;
    while (!run->cancel.cancelled()) {
        const auto found = co_await run->offload.run(run->reactor, job);
        if (!found || !*found) break;
        const LocalEntry& entry = **found;
        const bool goes_on = journal != nullptr && journal->find_upload(entry.path) != nullptr;
        if (entry.kind == LocalEntry::Kind::kFile && !goes_on) {
            sum.bytes += blocks_bytes(entry.stamp.size_bytes);
            ++sum.objects;
        }
    }
    co_return sum;
}

// What the objects below the prefix take. None: the server does not tell.
Task<std::optional<WantedSpace>> sum_of_objects(ObjectRun* run, const ObjectWalk::Options* below) {
    ObjectWalk::Options options = *below;
    ObjectWalk walk(run->reactor, run->objects, std::move(options));
    WantedSpace sum;
    for (;;) {
        const auto found = co_await walk.peek();
        if (!found) co_return std::nullopt;
        if (*found == nullptr) co_return sum;
        const ObjectWalk::Entry entry = walk.take();
        if (entry.size_bytes == fop::kSizeUnknown) co_return std::nullopt;
        sum.bytes += blocks_bytes(entry.size_bytes);
        ++sum.objects;
        co_await run->reactor.maybe_yield();
    }
}

struct QuotaQuestion {
    std::string pool{};
    // Asks an older server for quotas and their use only. False: asks it to begin an upload. The
    // server refuses this if the pool is full, also for an owner who may not see the quota of the
    // pool.
    bool only_reads = false;
};

// One number of a quota, of bytes or of objects.
struct QuotaNumber {
    std::uint64_t used = 0;
    std::uint64_t limit = 0;
    std::uint64_t wanted = 0;
    std::string_view unit{};

    bool fits() const {
        return limit == QuotaUse::kNoLimit || wanted <= limit - std::min(limit, used);
    }
};

// As the server would refuse it.
Problem over_quota(const QuotaUse& use, const QuotaNumber& number) {
    return {.status = fop::Status::kQuota,
            .words = "quota of " + core::printable(use.owner.value_or("all")) + " in pool " +
                     core::printable(use.pool) + ": " + std::to_string(number.used) + " of " +
                     std::to_string(number.limit) + " " + std::string(number.unit) + " used, " +
                     std::to_string(number.wanted) + " more wanted"};
}

Task<std::optional<Problem>> compare_with_quota(ObjectRun* run, std::string pool,
                                                WantedSpace wanted) {
    if (pool.empty()) co_return std::nullopt;
    const auto uses = co_await run->objects.quota(std::move(pool), run->wait());
    if (!uses) co_return std::nullopt;
    for (const QuotaUse& use : *uses) {
        // An administrator gets the quota use of all owners, and does not know which owner it is.
        if (use.owner && uses->size() > 1) continue;
        const QuotaNumber bytes{.used = use.used_bytes,
                                .limit = use.limit_bytes,
                                .wanted = wanted.bytes,
                                .unit = "bytes"};
        if (!bytes.fits()) co_return over_quota(use, bytes);
        const QuotaNumber objects{.used = use.used_objects,
                                  .limit = use.limit_objects,
                                  .wanted = wanted.objects,
                                  .unit = "objects"};
        if (!objects.fits()) co_return over_quota(use, objects);
    }
    co_return std::nullopt;
}

// The refusal if so much more would not fit the quota.
Task<std::optional<Problem>> ask_for_quota(ObjectRun* run, const QuotaQuestion* question,
                                           WantedSpace wanted) {
    std::string asked_of = question->pool;
    const auto fits = co_await run->objects.fits_quota(std::move(asked_of), wanted, run->wait());
    if (fits && *fits) co_return std::nullopt;
    if (!fits && fits.error().status == fop::Status::kQuota) co_return fits.error();
    if (!fits) co_return std::nullopt;
    // The server is older, and does not know the question.
    if (question->only_reads) {
        std::string pool = question->pool;
        co_return co_await compare_with_quota(run, std::move(pool), wanted);
    }
    NewObject object{.pool = run->arguments.pool, .group = run->arguments.group};
    Uploads& uploads = run->objects.uploads();
    const auto begun = co_await uploads.begin(std::move(object), wanted.bytes, run->wait());
    if (begun) {
        co_await uploads.abort(*begun);
    } else if (begun.error().status == fop::Status::kQuota) {
        co_return begun.error();
    }
    co_return std::nullopt;
}

}  // namespace

Task<QuotaVerdict> compare_tree_with_quota(ObjectRun* run, const LocalTree* tree,
                                           const PutJournal* journal,
                                           const ObjectWalk::Options* below) {
    std::string named = run->arguments.pool;
    auto pool = co_await run->objects.known_pool(std::move(named), run->wait());
    if (!pool) co_return QuotaVerdict{};
    // Before tapes the server would make room for so much, and a dry run changes nothing.
    const bool only_reads = pool->is_staged || run->arguments.dry_run;
    const QuotaQuestion question{.pool = std::move(pool->name), .only_reads = only_reads};
    const WantedSpace wanted = co_await sum_of_files(run, tree, journal);
    if (wanted.objects == 0 || wanted.bytes > fop::kOffsetMax || run->cancel.cancelled()) {
        co_return QuotaVerdict{};
    }
    auto refused = co_await ask_for_quota(run, &question, wanted);
    if (!refused) co_return QuotaVerdict{};
    const auto replaced = co_await sum_of_objects(run, below);
    if (!replaced) co_return QuotaVerdict{};
    if (replaced->objects == 0) co_return QuotaVerdict{.fault = std::move(refused)};
    QuotaVerdict verdict{.counts_on_replaced = true};
    const WantedSpace rest{.bytes = wanted.bytes - std::min(wanted.bytes, replaced->bytes),
                           .objects = wanted.objects - std::min(wanted.objects, replaced->objects)};
    if (rest.bytes > 0 || rest.objects > 0) {
        verdict.fault = co_await ask_for_quota(run, &question, rest);
    }
    co_return verdict;
}

}  // namespace fopd::client

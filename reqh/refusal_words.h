#pragma once

#include <array>
#include <string>
#include <string_view>

#include "fop/message.h"
#include "objects/disk_use.h"
#include "reqh/refusal.h"
#include "store/fid.h"

namespace fopd::reqh {

// Composes the words of a fop's refusals, and keeps them until the reply is sent. A refusal
// borrows its words until the next one is composed.
class RefusalWords {
public:
    RefusalWords() = default;
    RefusalWords(const RefusalWords&) = delete;
    RefusalWords& operator=(const RefusalWords&) = delete;

    // kMediumMissing: `what`, and the names of the disks, which may be empty.
    Refusal medium_missing(std::string_view what, std::string_view disks);
    // kQuota: the owner or pool of the quota, its use, and the amount that was requested.
    Refusal over_quota(const objects::DiskUse::Owner& owner, std::string_view pool,
                       objects::Amount wanted, objects::DiskUse::Verdict verdict);
    static constexpr std::string_view kAllOwners = "all";
    struct FullAccount {
        std::string_view owner{};  // kAllOwners: it is the account of the pool.
        std::string_view pool{};
        const objects::QuotaAccount* account = nullptr;
        bool lacks_objects = false;  // Otherwise it lacks blocks.
    };
    // kQuota: the owner or pool of the account, its use, and the amount that was requested.
    Refusal over_quota(const FullAccount& full, objects::Amount wanted);
    // kCorrupt.
    Refusal block_damaged(store::Fid fid, std::uint64_t block);
    // kNotFound.
    Refusal no_such_name(std::string_view pool);
    // kDenied.
    Refusal denied(std::string why);

private:
    // `length`: what snprintf() has returned for `words_`.
    Refusal composed(fop::Status status, int length) const;

    std::array<char, 2 * fop::kWordsBytesMax> words_;  // The message is cut behind a word.
    std::string denial_;
};

}  // namespace fopd::reqh

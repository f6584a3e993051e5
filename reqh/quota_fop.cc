#include <algorithm>
#include <string>
#include <vector>

#include "fop/listing.h"
#include "objects/block_io.h"
#include "reqh/caller.h"
#include "reqh/object_fops.h"
#include "reqh/operation.h"

namespace fopd::reqh {

namespace {

// An account and its sort key in the list. The separator is a line feed, which no name contains.
struct Account {
    std::string sort_key;
    const objects::LayoutPool* pool = nullptr;
    std::string_view owner{};
    const objects::QuotaAccount* account = nullptr;
    fop::QuotaEntry::Whose whose = fop::QuotaEntry::Whose::kOwner;
};

std::string sort_key_of(const objects::LayoutPool& pool, std::string_view owner) {
    return pool.name + '\n' + std::string(owner);
}

std::uint64_t bytes_of(std::uint64_t blocks) {
    return blocks == objects::QuotaAccount::kUnlimited ? fop::QuotaEntry::kNoLimit
                                                       : blocks * fop::kBlockBytes;
}

void add_all(const objects::LayoutPool& pool, std::vector<Account>& accounts) {
    accounts.push_back({.sort_key = pool.name,
                        .pool = &pool,
                        .account = &pool.quota->whole(),
                        .whose = fop::QuotaEntry::Whose::kPool});
    for (const objects::PoolQuota::Owner& each : pool.quota->owners()) {
        accounts.push_back({.sort_key = sort_key_of(pool, each.name),
                            .pool = &pool,
                            .owner = each.name,
                            .account = each.account});
    }
}

void add_own(const objects::LayoutPool& pool, std::string_view owner,
             std::vector<Account>& accounts) {
    accounts.push_back({.sort_key = sort_key_of(pool, owner),
                        .pool = &pool,
                        .owner = owner,
                        .account = &pool.quota->look_at(owner)});
}

fop::QuotaEntry quota_entry_of(const Account& each) {
    const objects::Amount used = each.account->used();
    const objects::Amount limit = each.account->limit();
    return {.used_bytes = bytes_of(used.blocks),
            .limit_bytes = bytes_of(limit.blocks),
            .used_objects = used.objects,
            .limit_objects = limit.objects,
            .whose = each.whose,
            .pool = each.pool->name,
            .owner = each.owner};
}

// Whether the caller may have so many bytes and objects more in the pool of the header.
Granted<> check_fits(Operation& operation, const fop::Quota& asked) {
    const auto pool = operation.layout().find_pool();
    if (!pool) return refused(pool.error());
    const std::uint64_t blocks = (asked.wanted_bytes + objects::kBlock - 1) / objects::kBlock;
    return operation.layout().check_quota({.pool = *pool, .owner = acting_user(operation.caller())},
                                          {.blocks = blocks, .objects = asked.wanted_objects});
}

}  // namespace

Task<fop::Reply> run_quota(Operation* operation) {
    operation->enter(Phase::kExecute);
    const auto& asked = operation->body<fop::Quota>();
    if (asked.wanted_bytes > 0 || asked.wanted_objects > 0) {
        const auto fits = check_fits(*operation, asked);
        if (!fits) co_return operation->refuse(fits.error());
        co_return fop::Reply{.body = fop::QuotaReply{.end = true, .compared = true}};
    }
    const objects::StoreLayoutPtr layout = operation->stores().layout_ptr();
    const std::string_view wanted = operation->header().pool;
    if (!wanted.empty()) {
        const auto pool = operation->layout().find_pool();
        if (!pool) co_return operation->refuse(pool.error());
    }
    std::vector<Account> accounts;
    for (const objects::LayoutPool& pool : layout->pools) {
        if (!wanted.empty() && pool.name != wanted) continue;
        if (operation->access().may_administer({.pool = pool.id})) {
            add_all(pool, accounts);
        } else {
            add_own(pool, acting_user(operation->caller()), accounts);
        }
    }
    std::erase_if(accounts,
                  [&asked](const Account& each) { return each.sort_key <= asked.cursor; });
    std::ranges::sort(accounts, {}, &Account::sort_key);
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    operation->work().text = asked.cursor;
    bool is_end = true;
    for (const Account& each : accounts) {
        is_end = writer.add(quota_entry_of(each));
        if (!is_end) break;
        operation->work().text = each.sort_key;
    }
    co_return fop::Reply{.payload = writer.written(),
                         .body = fop::QuotaReply{.cursor = operation->work().text, .end = is_end}};
}

}  // namespace fopd::reqh

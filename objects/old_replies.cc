#include "objects/old_replies.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "objects/object_change.h"

namespace fopd::objects {

namespace {

// In one change, which is made in one turn.
constexpr std::size_t kForgottenAtOnce = 64;

}  // namespace

Result<void> OldReplies::reply(const store::ReplyRecord& record) {
    if (is_old(record)) keys_.push_back(record.key);
    return {};
}

Task<Result<void>> OldReplies::between_turns() {
    for (std::size_t at = 0; at < keys_.size(); at += kForgottenAtOnce) {
        const std::size_t count = std::min(kForgottenAtOnce, keys_.size() - at);
        const auto forgotten = co_await forget(at, count);
        if (!forgotten) co_return forgotten;
    }
    keys_.clear();
    co_return Result<void>{};
}

Task<Result<void>> OldReplies::forget(std::size_t at, std::size_t count) {
    ObjectChange change(home_);
    auto room =
        co_await change.reserve(count * store::kForgetRecordBytes, wait_, store::Purpose::kFreeing);
    if (!room) co_return std::unexpected(room.error());
    std::array<store::ClientId, kForgottenAtOnce> whose;
    for (const store::ReplyKey& key : std::span(keys_).subspan(at, count)) {
        // A newer reply may have replaced this one in its request place.
        const auto found = home_.volume().map().find_reply(key);
        if (!found) co_return std::unexpected(found.error());
        const bool is_there = found->has_value() && is_old(**found);
        if (!is_there) continue;
        whose[change.records().count()] = key.client;
        change.records().forget(store::Key::reply(key));
    }
    if (change.records().count() == 0) co_return Result<void>{};
    // Not commit(): the shares are given back in the turn in which the change begins.
    const std::size_t forgotten = change.records().count();
    const Result<void> begun =
        change.begin(std::move(*room), store::Durability::kDurable, store::Data::kNone);
    if (!begun) co_return begun;
    for (const store::ClientId& client : std::span(whose).first(forgotten)) {
        home_.reply_shares().give_back(client);
    }
    const auto finished = co_await change.finish();
    if (!finished) co_return std::unexpected(finished.error());
    co_return Result<void>{};
}

}  // namespace fopd::objects

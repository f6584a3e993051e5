#include "objects/reply_shares.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::objects {

namespace {

constexpr Duration kTellInterval = 1min;

}  // namespace

ReplyShares::ReplyShares(const std::vector<store::ClientReplies>& counted,
                         std::uint64_t disk_blocks)
    : max_(std::clamp(disk_blocks, kMin, kMax)),
      nobody_(principals_.try_emplace(std::string()).first) {
    for (const store::ClientReplies& each : counted) {
        clients_.emplace_hint(clients_.end(), each.client,
                              Client{.principal = nobody_, .count = each.count});
        count_ += each.count;
    }
    nobody_->second.count = count_;
}

ReplyShares::Clients::iterator ReplyShares::enter(const store::ClientId& id,
                                                  std::string_view name) {
    const auto client = clients_.try_emplace(id, Client{.principal = nobody_}).first;
    // Two principals may use the same client id; the client stays assigned to the first one.
    if (client->second.principal != nobody_) return client;
    auto principal = principals_.find(name);
    if (principal == principals_.end()) {
        principal = principals_.try_emplace(std::string(name)).first;
    }
    client->second.principal = principal;
    nobody_->second.count -= client->second.count;
    principal->second.count += client->second.count;
    ++principal->second.clients;
    return client;
}

void ReplyShares::leave_if_empty(Clients::iterator client) {
    if (client->second.count > 0) return;
    const auto principal = client->second.principal;
    clients_.erase(client);
    if (principal != nobody_ && --principal->second.clients == 0) principals_.erase(principal);
}

bool ReplyShares::take(const store::ClientId& id, std::string_view name) {
    const auto client = enter(id, name);
    const Principal& principal = client->second.principal->second;
    if (count_ >= max_ || principal.count >= max_ - count_) {
        ++refused_count_;
        leave_if_empty(client);
        return false;
    }
    add_to(client);
    return true;
}

void ReplyShares::add(const store::ClientId& id, std::string_view name) {
    add_to(enter(id, name));
}

void ReplyShares::add_to(Clients::iterator client) {
    ++client->second.count;
    ++client->second.principal->second.count;
    ++count_;
}

void ReplyShares::give_back(const store::ClientId& id) {
    const auto client = clients_.find(id);
    ENSURE(client != clients_.end());
    --client->second.count;
    --client->second.principal->second.count;
    --count_;
    leave_if_empty(client);
}

bool ReplyShares::should_log_refusal(Instant now) {
    if (has_told_ && now - told_at_ < kTellInterval) return false;
    has_told_ = true;
    told_at_ = now;
    return true;
}

}  // namespace fopd::objects

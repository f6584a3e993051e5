// Operation's functions for recorded replies.

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/events.h"
#include "reqh/executors.h"
#include "reqh/operation.h"

namespace fopd::reqh {

namespace {

// No object has such an id, because no slot has the number 0xffff.
store::Fid fid_of_request(const store::ReplyKey& key) {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    std::memcpy(&high, key.client.bytes.data(), sizeof high);
    std::memcpy(&low, key.client.bytes.data() + sizeof high, key.client.bytes.size() - sizeof high);
    return {.high = high | 0xffffULL << 48,
            .low = low ^ key.request_number * 0x9e3779b97f4a7c15ULL};
}

}  // namespace

Task<Granted<std::optional<fop::Reply>>> Operation::recall() {
    enter(Phase::kDistributedResources);
    reply_key_ = {.client = {caller().owner}, .request_number = request().id};
    const objects::LockRequest same{.fid = fid_of_request(reply_key_),
                                    .range = objects::kAttributes,
                                    .mode = objects::LockMode::kExclusive};
    std::optional<Waiting> waiting(std::in_place, *origin().progress, reactor(),
                                   Wait{.what = WaitsFor::kSameRequest});
    const auto locked = co_await home().locks().acquire(once_lock_, same, wait());
    waiting.reset();
    if (!locked) co_return refused(locked.error());
    const auto newest = volume().map().newest_request(reply_key_);
    if (!newest) co_return refused(newest.error());
    if (*newest == 0) {
        const auto taken = take_reply_room();
        if (!taken) co_return refused(taken.error());
    }
    if (*newest < reply_key_.request_number) co_return std::nullopt;
    if (*newest > reply_key_.request_number) {
        // The request is late, from a session that its client has left: the client has had the
        // reply.
        co_return refused(fop::Status::kCancelled, "a later request has taken its place");
    }
    const auto found = volume().map().find_reply(reply_key_);
    if (!found) co_return refused(found.error());
    if (!found->has_value()) co_return std::nullopt;
    const auto reply = objects::read_recorded_reply((*found)->reply);
    if (!reply) co_return refused(reply.error());
    if (reply->type != type().number) {
        co_return refused(fop::Status::kMalformed, "its number was used for another fop before");
    }
    // If the log has failed, the map may have a reply that the log has lost.
    const auto synced = co_await volume().sync(wait());
    if (synced) co_return executor_of(type()).told_again(*this, *reply);
    if (volume().serving()) co_return refused(synced.error());
    co_return refused(fop::Status::kOutcomeUnknown, "the disk failed its log");
}

Granted<> Operation::take_reply_room() {
    objects::ReplyShares& shares = home().reply_shares();
    const std::string& principal = caller().share;
    // A disk that accepts no changes refuses this one later, with its reason.
    if (!volume().serving() || reply_room_.held()) return {};
    if (reply_room_.take(shares, reply_key_.client, principal)) return {};
    if (shares.is_to_tell(reactor().now())) {
        core::emit(stores().parts().events, core::Level::kWarn, "reqh.too_many_replies",
                   {{"slot", std::int64_t{home().slot()}},
                    {"principal", principal},
                    {"remembered", static_cast<std::int64_t>(shares.count())},
                    {"most", static_cast<std::int64_t>(shares.max())},
                    {"refused", static_cast<std::int64_t>(shares.refused_count())}});
    }
    return refused(fop::Status::kTryAgain,
                   "its principal has its share of the replies that the disk remembers");
}

// Another request may have used the request place, or vacated it, since recall().
bool Operation::fills_reply_place() {
    if (!puts_reply_) return false;
    const auto newest = volume().map().newest_request(reply_key_);
    return newest && *newest == 0;
}

void Operation::keep_reply_room() {
    if (!reply_room_.held()) home().reply_shares().add(reply_key_.client, caller().share);
    reply_room_.keep();
}

void Operation::put_reply(const objects::RecordedReply& reply) {
    std::array<std::byte, objects::kRecordedReplyBytesMax> bytes;
    change_.put_reply({.key = reply_key_,
                       .made = home().service_time(),
                       .reply = objects::write_recorded_reply(reply, bytes)});
    puts_reply_ = true;
}

fop::Changed Operation::changed_then(const objects::RecordedReply& reply) const {
    return {.version = reply.version, .size_bytes = reply.size_bytes, .receipt = durable_receipt()};
}

}  // namespace fopd::reqh

#include "reqh/recorded_replies.h"

#include <array>
#include <cstring>
#include <utility>

#include "core/events.h"

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

Task<Granted<std::optional<objects::RecordedReply>>> RecordedReplies::find() {
    fop_.enter(Phase::kDistributedResources);
    reply_key_ = {.client = {fop_.caller().owner}, .request_number = fop_.request().id};
    const objects::LockRequest same{.fid = fid_of_request(reply_key_),
                                    .range = objects::kAttributes,
                                    .mode = objects::LockMode::kExclusive};
    std::optional<Waiting> waiting(std::in_place, *fop_.origin().progress, fop_.reactor(),
                                   Wait{.what = WaitsFor::kSameRequest});
    const auto locked = co_await fop_.home().locks().acquire(lock_, same, fop_.wait());
    waiting.reset();
    if (!locked) co_return refused(locked.error());
    const auto newest = fop_.volume().map().newest_request(reply_key_);
    if (!newest) co_return refused(newest.error());
    if (*newest == 0) {
        const auto taken = take_room();
        if (!taken) co_return refused(taken.error());
    }
    if (*newest < reply_key_.request_number) co_return std::nullopt;
    if (*newest > reply_key_.request_number) {
        // The request is late, from a session that its client has left: the client has had the
        // reply.
        co_return refused(
            fop::Status::kCancelled,
            "the request number is outdated: a later request has used the same request place");
    }
    const auto found = fop_.volume().map().find_reply(reply_key_);
    if (!found) co_return refused(found.error());
    if (!found->has_value()) co_return std::nullopt;
    const auto reply = objects::read_recorded_reply((*found)->reply);
    if (!reply) co_return refused(reply.error());
    if (reply->type != fop_.type().number) {
        co_return refused(fop::Status::kMalformed,
                          "its request number was used for another request before");
    }
    // If the log has failed, the map may have a reply that the log has lost.
    const Waiting for_log = fop_.waits_for({.what = WaitsFor::kLog});
    const auto synced = co_await fop_.volume().sync(fop_.wait());
    if (synced) co_return *reply;
    if (fop_.volume().serving()) co_return refused(synced.error());
    co_return refused(fop::Status::kOutcomeUnknown, "the log of the disk has failed");
}

Granted<> RecordedReplies::take_room() {
    objects::ReplyShares& shares = fop_.home().reply_shares();
    const std::string& principal = fop_.caller().share;
    // A disk that accepts no changes refuses this one later, with its reason.
    if (!fop_.volume().serving() || room_.held()) return {};
    if (room_.take(shares, reply_key_.client, principal)) return {};
    if (shares.should_log_refusal(fop_.reactor().now())) {
        core::emit(fop_.stores().parts().events, core::Level::kWarn, "reqh.too_many_replies",
                   {{"device", fop_.home().device_name()},
                    {"slot", std::int64_t{fop_.home().slot()}},
                    {"principal", principal},
                    {"remembered", static_cast<std::int64_t>(shares.count())},
                    {"most", static_cast<std::int64_t>(shares.max())},
                    {"refused", static_cast<std::int64_t>(shares.refused_count())}});
    }
    return refused(fop::Status::kTryAgain,
                   "the principal has reached its share of the replies that the disk records");
}

// Another request may have used the request place, or vacated it, since find().
bool RecordedReplies::fills_place() const {
    if (!puts_reply_) return false;
    const auto newest = fop_.volume().map().newest_request(reply_key_);
    return newest && *newest == 0;
}

void RecordedReplies::keep_room() {
    if (!room_.held()) fop_.home().reply_shares().add(reply_key_.client, fop_.caller().share);
    room_.keep();
}

void RecordedReplies::put_reply(const objects::RecordedReply& reply,
                                objects::ObjectChange& change) {
    std::array<std::byte, objects::kRecordedReplyBytesMax> bytes;
    change.put_reply({.key = reply_key_,
                      .made = fop_.home().service_time(),
                      .reply = objects::write_recorded_reply(reply, bytes)});
    puts_reply_ = true;
}

void RecordedReplies::end() {
    lock_.release();
    room_.give_back();
    puts_reply_ = false;
}

}  // namespace fopd::reqh

#include "fabric/rpc/server_peer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fopd::fabric {

constexpr Server::Peer::Lack Server::Peer::kLacksRequests{
    .words = kRequestMemoryUsedUp, .count = &ServerStatistics::lacked_requests};
constexpr Server::Peer::Lack Server::Peer::kLacksWaiting{
    .words = "too many bytes wait for their turn", .count = &ServerStatistics::lacked_waiting};
constexpr Server::Peer::Lack Server::Peer::kLacksReplies{
    .words = "too many replies that its clients have not acknowledged",
    .count = &ServerStatistics::lacked_replies};

SessionUser::Verdict Server::Peer::on_proved(Session& proved) {
    ClientRecords& clients = server_.clients_;
    const auto taken = clients.take_session(proved.identity(), server_.host_.reactor().now());
    share_ = taken.share;
    if (share_ == nullptr) return {.refusal = taken.refusal};
    return {.resumed = clients.find(proved.client_id(), proved.identity()) != nullptr};
}

void Server::Peer::on_open(Session& opened) {
    unlink();
    server_.places_.give_back(*std::exchange(host, nullptr));
    const fop::Identity& identity = opened.identity();
    caller = {.session = opened.id(),
              .client = opened.client_id(),
              .kind = identity.kind,
              .principal = identity.name,
              .owner = request_owner(opened.client_id(), identity.kind, identity.name),
              .share = fop::share_name(identity),
              .user = identity.user,
              .groups = identity.groups,
              .rights = identity.rights,
              .address = opened.peer()};
    // The record is the principal's: another principal with the same client id is another client.
    // This ends an earlier session of the client, which may not be known to be lost yet. Its fops
    // that have not started are dropped: the client sends them again, and a late run would undo
    // later changes of the client.
    record = &server_.clients_.enter(opened.client_id(), identity, *share_, *this);
    if (!server_.armed()) {
        core::Reactor& reactor = server_.host_.reactor();
        reactor.arm(server_, after(reactor.now(), kSweepInterval));
    }
    if (server_.draining_) server_.say_bye(opened);
}

bool Server::Peer::on_requests(Session& session_now, const fop::RequestsView& requests) {
    const fop::RequestHeader header = requests.header();
    session_now.count_fops(requests.count());
    for (const fop::Request request : requests) {
        if (!take(session_now, header, request)) return false;
    }
    return true;
}

bool Server::Peer::take(Session& session_now, const fop::RequestHeader& header,
                        const fop::Request& request) {
    const fop::FopType* const type = fop::find_fop_type(request.type);
    const fop::Lane lane = Incoming::lane_of(type);
    CreditGrant& grant = session_now.fop_grant(lane);
    if (!grant.use()) return false;
    grant.grow();
    const bool is_once = type != nullptr && type->repeat == fop::Repeat::kOnce;
    const bool is_recorded = type != nullptr && type->repeat == fop::Repeat::kRecorded;
    if (const Lack* const lack = lacks(session_now, header, request, lane); lack != nullptr) {
        // A fop that is remembered gets its reply, or waits for it, in memory that it already has.
        // Any other request is put off. If the store may have a record of its reply, the client
        // sends it again under the same number.
        const bool is_remembered = is_once && record->fops().contains(request.id);
        if (!is_remembered) {
            put_off(request, lane, *lack);
            return true;
        }
    }

    RememberedFop* remembered = nullptr;
    if (is_recorded && !server_.clients_.may_record(*record, request.id)) {
        put_off(request, lane, kLacksReplies);
        return true;
    }
    if (is_once) {
        const auto [fop, is_new] = server_.clients_.remember(*record, request.id);
        if (fop == nullptr) {
            put_off(request, lane, kLacksReplies);
            return true;
        }
        remembered = fop;
        remembered->line = id();
        remembered->lane = lane;
        if (!is_new) {
            // The request arrived before, over a session that was lost.
            if (remembered->reply) reply(remembered->reply->view(), lane);
            return true;
        }
    }
    Incoming& incoming = server_.take_incoming();
    incoming.remembered = remembered;
    if (remembered != nullptr) remembered->run = &incoming;
    incoming.begin(*this, *share_, header, request, type);
    server_.user_.on_incoming(incoming);
    if (session != &session_now) return false;  // The fop has ended the session.
    if (incoming.peer() == this) incoming.begin_to_wait();
    return true;
}

// Why the request cannot be in memory now; null: it can.
const Server::Peer::Lack* Server::Peer::lacks(Session& session_now,
                                              const fop::RequestHeader& header,
                                              const fop::Request& request, fop::Lane lane) const {
    // Requests of the control lane are small, so they wait without loans.
    const bool on_loan = lane == fop::Lane::kData && session_now.fop_grant(lane).uses_loans();
    if (on_loan &&
        !session_now.may_wait(Incoming::waiting_bytes(Incoming::kept_bytes(header, request)))) {
        return &kLacksWaiting;
    }
    return server_.clients_.may_take_request(*share_) ? nullptr : &kLacksRequests;
}

void Server::Peer::put_off(const fop::Request& request, fop::Lane lane, const Lack& lack) {
    (server_.statistics_.*lack.count).add(1);
    reply({.id = request.id, .status = fop::Status::kTryAgain, .words = lack.words}, lane);
}

// One pass finds the fops of all requests: a message may name many, and a session have many fops.
void Server::Peer::on_cancelled(Session& session_now, std::span<const std::uint64_t> requests) {
    struct Named {
        std::uint64_t request;
        Incoming* found;
    };
    std::vector<Named> all;
    all.reserve(requests.size());
    for (const std::uint64_t request : requests) all.push_back({.request = request, .found = {}});
    std::ranges::sort(all, {}, &Named::request);
    const auto doubles = std::ranges::unique(all, {}, &Named::request);
    all.erase(doubles.begin(), doubles.end());
    for_each_running([&all](Incoming& each) {
        const auto at = std::ranges::lower_bound(all, each.request().id, {}, &Named::request);
        if (at != all.end() && at->request == each.request().id) at->found = &each;
    });
    for (const auto& [request, found] : all) {
        // To give up one may have ended others, whose objects may belong to another fop by now.
        const bool is_running =
            found != nullptr && found->peer() == this && found->request().id == request;
        if (is_running) {
            give_up(*found);
        } else {
            // The fop has ended or belongs to an earlier session, so nothing uses this client
            // memory: release it.
            session_now.let_go(request);
        }
    }
}

void Server::Peer::give_up(Incoming& incoming) {
    if (incoming.cancelling_ || incoming.is_given_up_) return;
    incoming.is_given_up_ = true;
    if (!incoming.is_released_by_cancel()) incoming.let_go_if_idle();
}

void Server::Peer::on_acknowledged(Session&, std::uint64_t before) {
    server_.clients_.acknowledged(*record, before);
}

void Server::Peer::on_bye(Session& session_now, std::string_view) {
    session_now.end(Errc::kClosed, "the client has closed its session");
}

void Server::Peer::on_turn_end(Session& session_now) {
    if (has_lost_reply_) {
        server_.statistics_.ended.add(1);
        return session_now.end(Errc::kNoSpace,
                               "the client does not receive its replies, and its "
                               "principal's share of the memory for replies is used up");
    }
    while (!backlog_.empty()) {
        const Waiting& next = backlog_.front();
        if (!put(session_now, next.reply.view(), next.lane)) return;
        const std::uint64_t bytes = next.bytes();
        backlog_.pop_front();
        server_.clients_.give_back_unsent(*share_, unsent_, bytes);
    }
}

void Server::Peer::on_end(Session&, const Error&, std::string_view) {
    session = nullptr;
    unlink();
    backlog_.clear();
    if (share_ != nullptr) server_.clients_.give_back_all_unsent(*share_, unsent_);
    const Instant now = server_.host_.reactor().now();
    if (record != nullptr) {
        server_.clients_.leave(*std::exchange(record, nullptr), *this, now);
    } else {
        server_.places_.give_back_later(*std::exchange(host, nullptr), now);
    }
    // No client gets the answer now. Fops that have started and that only this server remembers run
    // on, because the client may ask for the reply again; its record abandons them when it cannot
    // any more. Others are cancelled: a change that the store records has either happened, or
    // happens when the client sends it again.
    std::vector<Incoming*> unheard;
    for_each_running([this, &unheard](Incoming& each) {
        if (!each.started_) forget(each);
        if (each.remembered == nullptr) unheard.push_back(&each);
    });
    for (Incoming* each : unheard) {
        if (each->peer() == this) each->abandon();
    }
}

void Server::Peer::on_gone(Session&) {
    gone_ = true;
    if (share_ != nullptr) server_.clients_.give_back(*std::exchange(share_, nullptr));
    if (running_count_ == 0) server_.remove(*this);
}

void Server::Peer::join(Incoming& incoming) {
    running_.push_back(incoming);
    ++running_count_;
}

void Server::Peer::note_started(const Incoming& incoming) {
    const fop::FopType* const type = incoming.type;
    const bool is_recorded = type != nullptr && type->repeat == fop::Repeat::kRecorded;
    if (is_recorded && record != nullptr) {
        server_.clients_.note_recorded(*record, incoming.request().id);
    }
}

void Server::Peer::forget(Incoming& incoming) {
    if (incoming.remembered == nullptr) return;
    server_.clients_.forget(*std::exchange(incoming.remembered, nullptr), incoming.request().id,
                            server_.host_.reactor().now());
}

void Server::Peer::leave(Incoming& incoming) {
    incoming.unlink();
    if (--running_count_ == 0 && gone_) server_.remove(*this);
}

void Server::Peer::reply(const fop::Reply& reply, fop::Lane lane) {
    if (session == nullptr || session->state() != Session::State::kOpen) return;
    if (has_lost_reply_) return;
    if (backlog_.empty() && put(*session, reply, lane)) return;
    Waiting waiting{.reply = KeptReply(reply), .lane = lane};
    if (!server_.clients_.take_unsent(*share_, unsent_, waiting.bytes())) return lose_replies();
    backlog_.push_back(std::move(waiting));
}

void Server::Peer::lose_replies() {
    has_lost_reply_ = true;
    backlog_.clear();
    server_.clients_.give_back_all_unsent(*share_, unsent_);
    session->wants_turn();
}

// False: there is no room now.
bool Server::Peer::put(Session& session_now, const fop::Reply& reply, fop::Lane lane) {
    for (;;) {
        fop::MessageWriter* const message = session_now.replies();
        if (message == nullptr) return false;
        if (message->add(reply)) break;
        if (message->empty()) {
            // The client receives only small messages, but asked for a large payload in the
            // message.
            const bool added =
                message->add({.id = reply.id,
                              .status = fop::Status::kTooLarge,
                              .words = "the reply is larger than the messages this client takes"});
            ENSURE(added);
            break;
        }
        session_now.send_message();
    }
    session_now.fop_grant(lane).done_and_known();
    return true;
}

}  // namespace fopd::fabric

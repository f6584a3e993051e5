#include "fabric/rpc/server.h"

#include <algorithm>
#include <string_view>

#include "fabric/rpc/server_incoming.h"
#include "fabric/rpc/server_peer.h"

namespace fopd::fabric {

namespace {

// How many finished fops keep a large buffer for reuse.
constexpr std::size_t kLargeKept = 64;

constexpr std::string_view kDraining = "the node is draining and takes no new requests";

}  // namespace

Server::Server(SessionHost& host, IncomingUser& user, const ServerOptions& options)
    : Timer(&on_time),
      host_(host),
      user_(user),
      options_(options),
      places_({.count_max = options.handshakes_max, .time_max = host.options().handshake_timeout}),
      clients_({.sessions_max = options.sessions_max,
                .opens_max = options.session_opens_max,
                .open_interval = options.session_open_interval,
                .idle_max = options.clients_kept_max,
                .idle_time = options.client_kept,
                .reply_bytes_max = options.reply_bytes_max,
                .request_bytes_max = options.request_bytes_max,
                .unsent_bytes_max = options.unsent_bytes_max}),
      incoming_(host.reactor()) {}

Server::~Server() = default;

Result<void> Server::use_memory(std::span<std::byte> memory) {
    const auto registration = host_.machine().register_memory(memory);
    if (!registration) return std::unexpected(registration.error());
    registration_ = *registration;
    return {};
}

void Server::accept(std::unique_ptr<ConnectionRequest> request) {
    const auto hello = fop::decode_connect_hello(request->hello());
    if (!hello) return refuse(std::move(request), hello.error().context);
    if (draining_) return request->refuse(kDraining);
    const std::string from = HandshakePlaces::host_of(request->peer());
    const Instant now = host_.reactor().now();
    HandshakePlaces::Host* host = places_.take(from, now);
    if (host == nullptr && make_place_for(from)) host = places_.take(from, now);
    if (host == nullptr) return refuse(std::move(request), "too many handshakes");
    auto peer = std::make_unique<Peer>(*this, *host);
    Peer& user = *peer;
    peers_.emplace(&user, std::move(peer));
    in_handshake_.push_back(user);
    user.session = &host_.accept(std::move(request),
                                 {.hello = *hello,
                                  .locality = options_.locality,
                                  .incarnation = options_.incarnation,
                                  .admission = &admission_},
                                 user);
}

bool Server::make_place_for(const std::string& host) {
    if (!places_.is_full_for(host)) return false;
    if (places_.free_failed()) return true;
    Peer* const oldest =
        in_handshake_.find([this](Peer& each) { return places_.has_most(*each.host); });
    ENSURE(oldest != nullptr);
    oldest->session->end(Errc::kClosed, "too many handshakes: the place was given to another host");
    return places_.free_failed();
}

void Server::refuse(std::unique_ptr<ConnectionRequest> request, std::string_view words) {
    host_.count_refusal({.peer = request->peer(), .reason = words});
    request->refuse(words);
}

void Server::drain() {
    draining_ = true;
    host_.for_each([this](Session& session) {
        if (session.state() == Session::State::kOpen) say_bye(session);
    });
}

void Server::say_bye(Session& session) const {
    if (session.identity().kind != fop::AuthKind::kPeer) session.say_bye(kDraining);
}

std::size_t Server::end_outdated() {
    std::size_t ended = 0;
    host_.for_each([this, &ended](Session& session) {
        if (session.state() != Session::State::kOpen) return;
        if (admission_.still_holds(session.identity())) return;
        ++ended;
        session.end(Errc::kDenied, "its key is not accepted any more");
    });
    clients_.abandon([this](const fop::Identity& identity) {
        const auto known = admission_.find(identity);
        return known && known->identity.name == identity.name && fop::may_act(*known);
    });
    return ended;
}

std::vector<SessionInfo> Server::sessions() {
    std::vector<SessionInfo> list;
    const Instant now = host_.reactor().now();
    for (const auto& [key, peer] : peers_) {
        Session* const session = peer->session;
        if (session == nullptr || session->state() != Session::State::kOpen) continue;
        const CreditGrant& grant = session->fop_grant(fop::Lane::kData);
        list.push_back({.id = session->id(),
                        .peer = session->peer(),
                        .client = session->client_id(),
                        .principal = session->identity().name,
                        .user = session->identity().user,
                        .age = now - session->created_at(),
                        .idle = now - session->last_heard_at(),
                        .statistics = session->statistics(),
                        .fops_held = peer->running_count(),
                        .fops_waiting = grant.waiting(),
                        .fop_credits = grant.target(),
                        .fop_loans = grant.lent()});
    }
    std::ranges::sort(list, {}, &SessionInfo::id);
    return list;
}

std::vector<UnheardFop> Server::unheard(Duration gone_max) const {
    const Instant now = host_.reactor().now();
    std::vector<UnheardFop> list;
    clients_.for_each([&](const ClientRecord& client) {
        if (client.line() == nullptr && now - client.idle_since() > gone_max) return;
        const RequestOwner owner = request_owner(client.id(), client.kind(), client.principal());
        for (const std::uint64_t request : client.recorded()) {
            list.push_back({.owner = owner, .request = request});
        }
    });
    return list;
}

// A periodic sweep, while there is anything to forget.
void Server::on_time(core::Timer& timer) {
    auto& self = static_cast<Server&>(timer);
    core::Reactor& reactor = self.host_.reactor();
    const bool goes_on = self.clients_.forget_old(reactor.now());
    if (self.clients_.size() == 0) return;
    reactor.arm(self, after(reactor.now(), goes_on ? kSweepPause : kSweepInterval));
}

Server::Incoming& Server::take_incoming() {
    ++held_;
    return incoming_.take(*this);
}

void Server::release(Incoming& incoming) {
    --held_;
    Peer* const peer = std::exchange(incoming.peer_, nullptr);
    incoming.remembered = nullptr;
    incoming.cancel_.reset();
    if (PrincipalShare* const share = std::exchange(incoming.share_, nullptr); share != nullptr) {
        clients_.give_back_request(*share, incoming.counted_bytes_);
    }
    if (incoming_.free_count() >= kLargeKept &&
        incoming.storage_.capacity() > Incoming::kUncountedBytes) {
        incoming.storage_ = {};
    }
    incoming_.give_back(incoming);
    peer->leave(incoming);
}

void Server::remove(Peer& peer) {
    peers_.erase(&peer);
}

}  // namespace fopd::fabric

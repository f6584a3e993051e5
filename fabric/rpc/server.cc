#include "fabric/rpc/server.h"

#include <algorithm>
#include <deque>

#include "fabric/rpc/transfer_wait.h"
#include "fop/borrowed.h"
#include "fop/descriptor.h"

namespace fopd::fabric {

namespace {

constexpr Duration kSweepInterval = 10s;

// The first bytes of a waiting fop do not count against the loan; enough for a fop that only reads.
constexpr std::size_t kUncountedBytes = 512;
// How many finished fops keep a large buffer for reuse.
constexpr std::size_t kLargeKept = 64;

fop::Lane lane_of(const fop::FopType* type) {
    return type != nullptr ? type->lane : fop::Lane::kData;
}

// The bytes of a request that are kept as long as its fop exists.
std::size_t kept_bytes(const fop::RequestHeader& header, const fop::Request& request) {
    return fop::borrowed_bytes(request.body) + header.job.size() + header.pool.size() +
           header.user.size() + request.token.size() + request.payload.size();
}

std::uint32_t waiting_bytes(std::size_t kept) {
    return static_cast<std::uint32_t>(kept - std::min(kept, kUncountedBytes));
}

}  // namespace

// A client's session and its fops. Exists until nothing refers to it.
class Server::Peer final : public SessionUser, public core::ListNode, ClientLine {
public:
    Peer(Server& server, std::string from) : host(std::move(from)), server_(server) {}

    Verdict on_proved(Session& session) override;
    void on_open(Session& session) override;
    bool on_requests(Session& session, const fop::RequestsView& requests) override;
    bool on_replies(Session&, const fop::RepliesView&) override { return false; }
    void on_cancelled(Session& session, std::uint64_t request) override;
    void on_let_go(Session&, std::uint64_t) override {}
    void on_acknowledged(Session& session, std::uint64_t before) override;
    void on_bye(Session& session, std::string_view words) override;
    void on_turn_end(Session& session) override;
    void on_end(Session& session, const Error& error, std::string_view words) override;
    void on_gone(Session& session) override;

    // Sends the reply at the end of this turn, or keeps a copy if there is no room. The message
    // returns the fop's credit, so a client that receives no replies runs out of credits.
    void reply(const fop::Reply& reply, fop::Lane lane) override;
    void leave(Incoming& incoming);
    // From now on the store may have a record of the reply.
    void note_started(const Incoming& incoming);
    // The fop has changed nothing: a resend of it counts as a new fop.
    void forget(Incoming& incoming);
    void join(Incoming& incoming);

    Session* session = nullptr;  // Null: the session has ended.
    const std::string host;      // The host of the peer.
    Caller caller;
    ClientRecord* record = nullptr;
    core::IntrusiveList<Incoming> running;
    std::uint32_t running_count = 0;

private:
    std::uint64_t id() const override { return caller.session; }
    void replaced() override { session->end(Errc::kClosed, "its client has connected again"); }
    bool take(Session& session, const fop::RequestHeader& header, const fop::Request& request);
    bool put(Session& session, const fop::Reply& reply, fop::Lane lane);
    void put_off(const fop::Request& request, fop::Lane lane, std::string_view words) {
        reply({.id = request.id, .status = fop::Status::kTryAgain, .words = words}, lane);
    }

    struct Waiting {
        KeptReply reply;
        fop::Lane lane;
    };

    Server& server_;
    PrincipalShare* share_ = nullptr;  // Set when the session counts in it.
    bool gone_ = false;
    std::deque<Waiting> backlog_;  // Limited by the fop credits and loans.
};

class Server::Incoming final : public IncomingFop, public core::ListNode {
public:
    explicit Incoming(Server& server) : server_(server) {}

    void begin(Peer& peer, const fop::RequestHeader& header, const fop::Request& request,
               const fop::FopType* type);

    const fop::Request& request() const override { return request_; }
    const fop::RequestHeader& header() const override { return header_; }
    const Caller& caller() const override { return peer_->caller; }
    Instant deadline() const override { return deadline_; }
    core::CancelSource& cancel_source() override { return *cancel_; }
    void started() override {
        ENSURE(!started_);
        started_ = true;
        end_waiting();
        peer_->note_started(*this);
    }
    // Called after arrival: a fop that has neither started nor been answered waits for its turn.
    void begin_to_wait();
    Task<Result<void>> pull(const fop::SealedDescriptor* source, std::uint64_t offset,
                            core::Buffer into) override {
        return transfer(Transfer::Direction::kPull, source, offset, into);
    }
    Task<Result<void>> push(const fop::SealedDescriptor* target, std::uint64_t offset,
                            core::Buffer from) override {
        return transfer(Transfer::Direction::kPush, target, offset, from);
    }
    void reply(const fop::Reply& reply) override;

    Peer* peer() { return peer_; }
    RememberedFop* remembered = nullptr;
    const fop::FopType* type = nullptr;  // Null: unknown.
    fop::Lane lane = fop::Lane::kData;

private:
    friend Server;
    Task<Result<void>> transfer(Transfer::Direction direction,
                                const fop::SealedDescriptor* descriptor, std::uint64_t offset,
                                core::Buffer piece);
    // Tells a client that gave up the fop that its memory is no longer in use.
    void let_go_if_idle();
    template <typename Bytes>
    Bytes keep(Bytes bytes);
    void end_waiting();

    Server& server_;
    Peer* peer_ = nullptr;
    fop::Request request_;
    fop::RequestHeader header_;
    Instant deadline_ = kNever;
    std::optional<core::CancelSource> cancel_;
    bool cancelling_ = false;
    bool started_ = false;
    bool waits_ = false;
    bool is_given_up_ = false;  // The client gave it up: no further transfer begins.
    bool replied_ = false;
    std::uint32_t transfers_ = 0;     // In flight.
    std::vector<std::byte> storage_;  // The memory of request_ and header_.
};

// -- the server --

Server::Server(SessionHost& host, IncomingUser& user, const ServerOptions& options)
    : Timer(&on_time),
      host_(host),
      user_(user),
      options_(options),
      places_({.count_max = options.handshakes_max, .time_max = host.options().handshake_timeout}),
      clients_({.sessions_max = options.sessions_max,
                .idle_max = options.clients_kept_max,
                .idle_time = options.client_kept,
                .reply_bytes_max = options.reply_bytes_max}) {}

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
    if (draining_) return request->refuse("the node drains");
    std::string host = HandshakePlaces::host_of(request->peer());
    const Instant now = host_.reactor().now();
    if (!places_.take(host, now) && !(make_place_for(host) && places_.take(host, now))) {
        return refuse(std::move(request), "too many handshakes");
    }
    auto peer = std::make_unique<Peer>(*this, std::move(host));
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

bool Server::make_place_for(std::string_view host) {
    if (!places_.is_full_for(host)) return false;
    if (places_.free_failed()) return true;
    const std::uint32_t most = places_.most();
    Peer* const oldest = in_handshake_.find(
        [this, most](Peer& each) { return places_.count_of(each.host) == most; });
    ENSURE(oldest != nullptr);
    oldest->session->end(Errc::kClosed, "too many handshakes: another host got its place");
    return places_.free_failed();
}

void Server::refuse(std::unique_ptr<ConnectionRequest> request, std::string_view words) {
    host_.count_refusal(request->peer(), words);
    request->refuse(words);
}

void Server::drain() {
    draining_ = true;
    host_.for_each([](Session& session) {
        if (session.state() == Session::State::kOpen) session.say_bye("the node drains");
    });
}

std::size_t Server::end_outdated() {
    std::size_t ended = 0;
    host_.for_each([this, &ended](Session& session) {
        if (session.state() != Session::State::kOpen) return;
        if (admission_.still_holds(session.identity())) return;
        ++ended;
        session.end(Errc::kDenied, "its key is not accepted any more");
    });
    return ended;
}

std::vector<SessionInfo> Server::sessions() {
    std::vector<SessionInfo> list;
    const Instant now = host_.reactor().now();
    for (const auto& [place, peer] : peers_) {
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
                        .fops_held = peer->running_count,
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
    self.clients_.forget_old(reactor.now());
    if (self.clients_.size() > 0) reactor.arm(self, after(reactor.now(), kSweepInterval));
}

Server::Incoming& Server::take_incoming() {
    ++held_;
    if (free_incoming_.empty()) {
        incoming_.push_back(std::make_unique<Incoming>(*this));
        return *incoming_.back();
    }
    Incoming& incoming = *free_incoming_.back();
    free_incoming_.pop_back();
    return incoming;
}

void Server::release(Incoming& incoming) {
    --held_;
    Peer* const peer = std::exchange(incoming.peer_, nullptr);
    incoming.remembered = nullptr;
    incoming.cancel_.reset();
    if (free_incoming_.size() >= kLargeKept && incoming.storage_.capacity() > kUncountedBytes) {
        incoming.storage_ = {};
    }
    free_incoming_.push_back(&incoming);
    peer->leave(incoming);
}

void Server::remove(Peer& peer) {
    peers_.erase(&peer);
}

// -- one session --

SessionUser::Verdict Server::Peer::on_proved(Session& proved) {
    ClientRecords& clients = server_.clients_;
    share_ = clients.take_session(proved.identity());
    if (share_ == nullptr) return {.refusal = clients.why_no_session()};
    return {.resumed = clients.find(proved.client_id(), proved.identity()) != nullptr};
}

void Server::Peer::on_open(Session& opened) {
    unlink();
    server_.places_.give_back(host);
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
    // what the client does after the answer.
    record = &server_.clients_.enter(opened.client_id(), identity, *share_, *this);
    if (!server_.armed()) {
        core::Reactor& reactor = server_.host_.reactor();
        reactor.arm(server_, after(reactor.now(), kSweepInterval));
    }
    if (server_.draining_) opened.say_bye("the node drains");
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
    const fop::Lane lane = lane_of(type);
    CreditGrant& grant = session_now.fop_grant(lane);
    if (!grant.use()) return false;
    grant.grow();
    const bool on_loan = lane == fop::Lane::kData && grant.uses_loans();
    if (on_loan && !session_now.may_wait(waiting_bytes(kept_bytes(header, request)))) {
        put_off(request, lane, "too many bytes wait for their turn");
        return true;
    }

    RememberedFop* remembered = nullptr;
    const bool is_once = type != nullptr && type->repeat == fop::Repeat::kOnce;
    const bool is_recorded = type != nullptr && type->repeat == fop::Repeat::kRecorded;
    constexpr std::string_view kTooManyReplies =
        "too many replies that its clients have not acknowledged";
    if (is_recorded && !server_.clients_.may_record(*record, request.id)) {
        put_off(request, lane, kTooManyReplies);
        return true;
    }
    if (is_once) {
        const auto [fop, is_new] = server_.clients_.remember(*record, request.id);
        if (fop == nullptr) {
            put_off(request, lane, kTooManyReplies);
            return true;
        }
        remembered = fop;
        remembered->line = id();
        remembered->lane = lane;
        if (!is_new) {
            // It arrived before, over a session that was lost.
            if (remembered->reply) reply(remembered->reply->view(), lane);
            return true;
        }
    }
    Incoming& incoming = server_.take_incoming();
    incoming.remembered = remembered;
    incoming.begin(*this, header, request, type);
    server_.user_.on_incoming(incoming);
    if (session != &session_now) return false;  // The fop has ended the session.
    if (incoming.peer() == this) incoming.begin_to_wait();
    return true;
}

void Server::Peer::on_cancelled(Session& session_now, std::uint64_t request) {
    Incoming* found = nullptr;
    running.for_each([&found, request](Incoming& each) {
        if (each.request().id == request) found = &each;
    });
    // It was answered, or came over an earlier session: no transfer uses memory of this session.
    if (found == nullptr) return session_now.let_go(request);
    if (found->cancelling_ || found->is_given_up_) return;
    found->is_given_up_ = true;
    found->cancelling_ = true;
    found->cancel_source().cancel();
    found->cancelling_ = false;
    if (found->replied_) return server_.release(*found);
    found->let_go_if_idle();
}

void Server::Peer::on_acknowledged(Session&, std::uint64_t before) {
    server_.clients_.acknowledged(*record, before);
}

void Server::Peer::on_bye(Session& session_now, std::string_view) {
    session_now.end(Errc::kClosed, "the client is leaving");
}

void Server::Peer::on_turn_end(Session& session_now) {
    while (!backlog_.empty()) {
        const Waiting& next = backlog_.front();
        if (!put(session_now, next.reply.view(), next.lane)) return;
        backlog_.pop_front();
    }
}

void Server::Peer::on_end(Session&, const Error&, std::string_view) {
    session = nullptr;
    unlink();
    backlog_.clear();
    const Instant now = server_.host_.reactor().now();
    if (record != nullptr) {
        server_.clients_.leave(*std::exchange(record, nullptr), *this, now);
    } else {
        server_.places_.give_back_later(host, now);
    }
    // No client gets the answer now. Fops that have started and that only this server remembers run
    // to their end, because the client may ask for the reply again. Others are cancelled: what the
    // store records either has happened, or happens when the client sends it again.
    std::vector<Incoming*> unheard;
    running.for_each([this, &unheard](Incoming& each) {
        if (!each.started_) forget(each);
        if (each.remembered == nullptr) unheard.push_back(&each);
    });
    for (Incoming* each : unheard) {
        if (each->peer() != this || each->cancelling_) continue;
        each->cancelling_ = true;
        each->cancel_source().cancel();
        each->cancelling_ = false;
        if (each->replied_) server_.release(*each);
    }
}

void Server::Peer::on_gone(Session&) {
    gone_ = true;
    if (share_ != nullptr) server_.clients_.give_back(*std::exchange(share_, nullptr));
    if (running_count == 0) server_.remove(*this);
}

void Server::Peer::join(Incoming& incoming) {
    running.push_back(incoming);
    ++running_count;
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
    if (--running_count == 0 && gone_) server_.remove(*this);
}

void Server::Peer::reply(const fop::Reply& reply, fop::Lane lane) {
    if (session == nullptr || session->state() != Session::State::kOpen) return;
    if (!backlog_.empty() || !put(*session, reply, lane)) {
        backlog_.push_back({.reply = KeptReply(reply), .lane = lane});
    }
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

// -- one fop --

template <typename Bytes>
Bytes Server::Incoming::keep(Bytes bytes) {
    if (bytes.empty()) return {};
    const auto* const from = reinterpret_cast<const std::byte*>(bytes.data());
    const std::size_t at = storage_.size();
    storage_.insert(storage_.end(), from, from + bytes.size());
    using Element = std::remove_reference_t<decltype(*bytes.data())>;
    return Bytes(reinterpret_cast<Element*>(storage_.data() + at), bytes.size());
}

void Server::Incoming::begin(Peer& peer, const fop::RequestHeader& header,
                             const fop::Request& request, const fop::FopType* known) {
    peer_ = &peer;
    type = known;
    lane = lane_of(type);
    started_ = waits_ = replied_ = cancelling_ = is_given_up_ = false;
    cancel_.emplace();
    peer.join(*this);
    SessionHost& host = server_.host_;
    deadline_ = request.timeout.count() > 0 ? after(host.reactor().now(), request.timeout) : kNever;

    // Reserved in one step, because the copied body refers to this memory.
    const std::size_t of_body = fop::borrowed_bytes(request.body);
    storage_.clear();
    storage_.reserve(kept_bytes(header, request));
    request_ = request;
    header_ = header;
    storage_.resize(of_body);
    fop::keep_borrowed(request_.body, storage_);
    request_.payload = keep(request.payload);
    request_.token = keep(request.token);
    header_.job = keep(header.job);
    header_.pool = keep(header.pool);
    header_.user = keep(header.user);
    if (request_.fault != fop::Status::kDone) return;
    if (request_.payload.size() > host.options().inline_max) {
        request_.fault = fop::Status::kTooLarge;
    } else if (!fop::payload_intact(request_)) {
        request_.fault = fop::Status::kCorrupt;
    }
}

void Server::Incoming::begin_to_wait() {
    if (started_ || replied_ || lane != fop::Lane::kData) return;
    waits_ = true;
    peer_->session->fop_waits(waiting_bytes(storage_.size()));
}

void Server::Incoming::end_waiting() {
    if (std::exchange(waits_, false) && peer_->session != nullptr) {
        peer_->session->fop_waits_no_more(waiting_bytes(storage_.size()));
    }
}

Task<Result<void>> Server::Incoming::transfer(Transfer::Direction direction,
                                              const fop::SealedDescriptor* descriptor,
                                              std::uint64_t offset, core::Buffer piece) {
    Session* const session = peer_->session;
    if (session == nullptr || session->state() != Session::State::kOpen) {
        co_return std::unexpected(Error{.code = Errc::kClosed, .context = "session"});
    }
    const fop::DescriptorNeed need{.use = direction == Transfer::Direction::kPull
                                              ? fop::DescriptorUse::kPeerReads
                                              : fop::DescriptorUse::kPeerWrites,
                                   .session = session->id(),
                                   .operation = request_.id,
                                   .bytes = offset + piece.size_bytes};
    const auto opened = fop::check_descriptor(*descriptor, session->descriptor_key(), need);
    if (!opened) co_return std::unexpected(opened.error());
    const TransferWait::What what{
        .direction = direction,
        .local = {.bytes = piece.span(), .registration = server_.registration_},
        .remote = {.address = opened->address + offset, .key = opened->key}};
    const core::WaitOptions wait{.deadline = deadline_, .cancel = &*cancel_};
    TransferWait waiting(session, what, wait);
    ++transfers_;
    const auto moved = co_await waiting;
    --transfers_;
    let_go_if_idle();
    co_return moved;
}

void Server::Incoming::let_go_if_idle() {
    if (!is_given_up_ || transfers_ > 0 || peer_->session == nullptr) return;
    peer_->session->let_go(request_.id);
}

void Server::Incoming::reply(const fop::Reply& given) {
    ENSURE(!replied_);
    replied_ = true;
    fop::Reply reply = given;
    reply.id = request_.id;
    end_waiting();
    if (!started_) peer_->forget(*this);
    if (remembered != nullptr) {
        server_.clients_.answered(*std::exchange(remembered, nullptr), reply,
                                  server_.host_.reactor().now());
    } else {
        peer_->reply(reply, lane);
    }
    if (!cancelling_) server_.release(*this);
}

}  // namespace fopd::fabric

#include "fabric/session/session_host.h"

#include <algorithm>
#include <cerrno>

#include "core/zeroed_array.h"
#include "fop/record_cipher.h"

namespace fopd::fabric {

namespace {

// How many parts of transfers the transport works on at a time, in total. Enough to keep a link
// busy; parts that still wait can be withdrawn. The fewer places for them are free, the fewer a
// session may take, so that peers whose transfers stand still cannot take all of them.
constexpr std::uint32_t kTransfersMax = 256;
constexpr std::uint32_t kTransfersOfOneMax = 16;
constexpr std::uint32_t kShareOfOne = 8;  // A session may take this part of the free places.

// How long a session that lacks loans waits until others are asked to return unused ones, and the
// time between two passes over sessions.
constexpr Duration kLoansSettledIn = 20ms;
// Answering a ClientHello takes 0.1 ms of X25519, for a client that has not proved anything yet.
constexpr std::uint32_t kGreetingsPerTurn = 4;

// Fops leave one in eight of the send buffers to control messages and handshakes; control messages
// leave one in sixteen to handshakes.
constexpr std::size_t kReservedFromFops = 8;
constexpr std::size_t kReservedFromControl = 16;
// A session may have at most one in kShareOfSends of the send buffers in flight that its principal
// may still take. So the more peers stop reading, the fewer buffers each of them holds.
constexpr std::size_t kShareOfSends = 2;
// When no buffer is left, a peer that has received nothing for this long is disconnected.
constexpr Duration kPatience = 1s;

// At most this many sessions end in a turn, because the end of each may cost system calls.
constexpr std::uint32_t kSessionEndsPerTurn = 32;

constexpr Error kNotEncrypted{.code = Errc::kUnsupported,
                              .context = "only tcp:// can be encrypted"};
constexpr Error kNoCipher{.code = Errc::kUnsupported,
                          .context = "libcrypto of OpenSSL has no AES-256-GCM here"};

// A handle is an index in sessions_ and a random number, so that strangers cannot name a session.
constexpr std::uint64_t index_of(std::uint64_t handle) {
    return handle & 0xffffffff;
}

}  // namespace

SendBuffer::SendBuffer(SessionHost& owner, std::span<std::byte> memory, void* registration)
    : TransferOp([](TransferOp& op) {
          auto& self = static_cast<SendBuffer&>(op);
          self.session->on_sent(self);
      }),
      host(owner),
      whole{.bytes = memory, .registration = registration} {}

SessionHost::SessionHost(core::Reactor& reactor, core::EventSink& events, core::Entropy& entropy,
                         const HostOptions& options)
    : reactor_(reactor),
      events_(events),
      entropy_(entropy),
      options_(options),
      // One receive buffer stays free for a control message.
      message_credits_(options.machine.receive_buffer_count - 1),
      fop_credits_(options.fop_credits_total),
      loans_({.total = options.fop_loans_total,
              .of_session = options.fop_loans_max,
              .bytes = options.fop_loan_bytes_total}),
      empty_(reactor),
      all_sent_(reactor) {
    ENSURE(options_.send_buffer_bytes >= fop::kMessageBytesMin);
    ENSURE(options_.machine.receive_buffer_bytes >= fop::kMessageBytesMin);
}

SessionHost::~SessionHost() {
    // Sessions are destroyed first: their operations in flight use the buffers.
    sessions_.clear();
    machine_.reset();
    buffers_.clear();
    if (!send_memory_.empty()) core::unmap_zeros(send_memory_.data(), send_memory_.size());
}

Result<void> SessionHost::open(Transport& transport) {
    ENSURE(machine_ == nullptr);
    if (options_.protection == fop::Protection::kEncrypt) {
        if (!transport.can_encrypt()) return std::unexpected(kNotEncrypted);
        if (!fop::RecordCipher::is_available()) return std::unexpected(kNoCipher);
    }
    const std::size_t bytes = std::size_t{options_.send_buffer_count} * options_.send_buffer_bytes;
    // Untouched pages cost nothing; the buffer returned last is used first.
    void* const memory = core::map_zeros(bytes);
    if (memory == nullptr) return std::unexpected(os_error(errno, "memory to send from"));
    send_memory_ = {static_cast<std::byte*>(memory), bytes};

    // Added before the machine, so that the machine sends the messages of a turn at its end.
    reactor_.add_poller(*this);
    auto machine = transport.make_machine(reactor_, *this, options_.machine);
    if (!machine) return std::unexpected(machine.error());
    machine_ = std::move(*machine);
    const auto registration = machine_->register_memory(send_memory_);
    if (!registration) return std::unexpected(registration.error());
    for (std::size_t i = 0; i < options_.send_buffer_count; ++i) {
        const auto part =
            send_memory_.subspan(i * options_.send_buffer_bytes, options_.send_buffer_bytes);
        buffers_.push_back(std::make_unique<SendBuffer>(*this, part, *registration));
    }
    for (auto each = buffers_.rbegin(); each != buffers_.rend(); ++each) {
        free_buffers_.push_back(each->get());
    }
    return {};
}

Task<bool> SessionHost::sent(Instant deadline) {
    co_await reactor_.yield();  // Messages of this turn leave at its end.
    const core::WaitOptions options{.deadline = deadline};
    while (free_buffers_.size() < buffers_.size()) {
        const auto woken = co_await all_sent_.wait(options);
        if (!woken) co_return false;
    }
    co_return true;
}

Task<void> SessionHost::close() {
    closing_ = true;
    for_each([](Session& session) { session.end(Errc::kClosed, "this side is stopping"); });
    // Without a deadline: the transport completes the operations of closed connections.
    while (count_ > 0) {
        [[maybe_unused]] const auto woken = co_await empty_.wait({});
    }
    if (machine_ == nullptr) co_return;
    reactor_.remove_poller(*this);
    co_await machine_->stop();
}

Session& SessionHost::add(Session::Role role, SessionUser& user) {
    ENSURE(!closing_);
    std::uint32_t index;
    if (free_indexes_.empty()) {
        index = static_cast<std::uint32_t>(sessions_.size());
        sessions_.emplace_back();
    } else {
        index = free_indexes_.back();
        free_indexes_.pop_back();
    }
    const std::uint64_t handle = (entropy_.number() << 32) | index;
    sessions_[index] = std::make_unique<Session>(*this, role, handle, user);
    ++count_;
    return *sessions_[index];
}

Session& SessionHost::accept(std::unique_ptr<ConnectionRequest> request, const Accepting& accepting,
                             SessionUser& user) {
    Session& session = add(Session::Role::kServer, user);
    session.peer_handle_ = accepting.hello.session;
    session.client_id_ = accepting.hello.client_id;
    session.peer_ = request->peer();
    session.admission_ = accepting.admission;
    session.accepted_ = {.locality = accepting.locality,
                         .session = session.handle_,
                         .incarnation = accepting.incarnation};
    const auto answer = fop::encode(session.accepted_);
    fop::ServerRandom random;
    entropy_.fill(random.writable());
    session.server_handshake_ = std::make_unique<fop::ServerHandshake>(
        fop::ServerHandshake::Options{
            .offer = {.message_bytes_max = options_.machine.receive_buffer_bytes,
                      .inline_max = options_.inline_max,
                      .incarnation = accepting.incarnation,
                      .lease = options_.lease},
            .grant = {.message_credits = options_.message_credits_floor,
                      .fop_credits_data = options_.fop_credits_floor,
                      .fop_credits_control = options_.control_credits},
            .connect_data = {.connect = fop::encode(accepting.hello), .accept = answer},
            .protection = options_.protection},
        random);
    reactor_.arm(session.deadline_, after(reactor_.now(), options_.handshake_timeout));
    session.connection_ = machine_->accept(std::move(request), answer, session);
    return session;
}

Session& SessionHost::connect(const Connecting& connecting, SessionUser& user) {
    Session& session = add(Session::Role::kClient, user);
    session.client_id_ = connecting.client;
    session.peer_ = format_address(connecting.server);
    join_share(session);
    fop::ClientRandom random;
    entropy_.fill(random.writable());
    session.client_handshake_ = std::make_unique<fop::ClientHandshake>(
        fop::ClientHandshake::Options{
            .credentials = connecting.credentials,
            .offer = {.message_bytes_max = options_.machine.receive_buffer_bytes,
                      .message_credits = options_.message_credits_floor},
            .protection = options_.protection},
        random);
    session.connect_hello_ = fop::encode(
        fop::ConnectHello{.locality = connecting.server.locality.value_or(fop::kAnyLocality),
                          .client_id = connecting.client,
                          .session = session.handle_,
                          .promise = session.client_handshake_->promise()});
    reactor_.arm(session.deadline_, after(reactor_.now(), options_.handshake_timeout));
    session.connection_ = machine_->connect(connecting.server, session.connect_hello_, session);
    return session;
}

void SessionHost::count_refusal(const Refused& refused) {
    statistics_.refused.add(1);
    const std::string session = refused.session == 0 ? "" : format_session_id(refused.session);
    const std::string key_id = refused.key_id ? fop::to_text(*refused.key_id) : "";
    emit(events_, core::Level::kWarn, "fabric.session_refused",
         {{"session", std::string_view(session)},
          {"peer", refused.peer},
          {"key_id", std::string_view(key_id)},
          {"reason", refused.reason}});
}

void SessionHost::for_each(const std::function<void(Session&)>& visit) {
    // By index: a visit may add sessions.
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
        if (sessions_[i] != nullptr && sessions_[i]->state() != Session::State::kEnding) {
            visit(*sessions_[i]);
        }
    }
}

bool SessionHost::at_rest() const {
    return count_ == 0 && ends_.empty() && transfers_in_flight_ == 0 &&
           free_buffers_.size() == buffers_.size() &&
           message_credits_.free() == message_credits_.total() &&
           fop_credits_.free() == fop_credits_.total() && loans_.taken() == 0 &&
           loans_.taken_bytes() == 0;
}

Session* SessionHost::find(std::uint64_t handle) {
    const std::uint64_t index = index_of(handle);
    if (index >= sessions_.size() || sessions_[index] == nullptr) return nullptr;
    return sessions_[index]->handle_ == handle ? sessions_[index].get() : nullptr;
}

void SessionHost::on_message(std::span<const std::byte> message, const Connection* by) {
    const auto prefix = fop::read_prefix(message);
    Session* const session = prefix ? find(prefix->session) : nullptr;
    if (session == nullptr) {
        statistics_.garbage.add(1);
        emit(
            events_, core::Level::kWarn, "fabric.garbage",
            {{"bytes", static_cast<std::uint64_t>(message.size())},
             {"reason", std::string_view(prefix ? "unknown session id" : prefix.error().context)}});
        return;
    }
    // A stranger that listens on the network has copied a message of the session, perhaps one that
    // has not arrived yet.
    if (by != nullptr && by != session->connection_.get()) {
        return session->drop_unsealed("sent over another connection");
    }
    session->on_message(*prefix, message);
}

void SessionHost::end_of_turn() {
    // Sessions that ask again from on_turn_end() get the next turn.
    core::IntrusiveList<InTurnEnd> now;
    while (InTurnEnd* each = turn_end_.pop_front()) now.push_back(*each);
    while (InTurnEnd* each = now.pop_front()) static_cast<Session*>(each)->end_turn();
    answer_greetings();
    start_transfers();

    // When thousands end at once, the rest is left to the next turns.
    for (std::uint32_t i = 0; i < kSessionEndsPerTurn; ++i) {
        InEnds* const next = ends_.pop_front();
        if (next == nullptr) break;
        auto& session = static_cast<Session&>(*next);
        session.disconnect();
        if (session.can_be_buried()) bury(session);
    }
}

void SessionHost::settle_loans_soon() {
    are_loans_lacked_ = true;
    arm_loan_timer();
}

void SessionHost::arm_loan_timer() {
    if (!loan_timer_.armed()) {
        reactor_.arm(loan_timer_, after(reactor_.now(), kLoansSettledIn));
    }
}

void SessionHost::LoanTimer::on_time(core::Timer& timer) {
    static_cast<LoanTimer&>(timer).host.settle_some_loans();
}

void SessionHost::settle_some_loans() {
    if (next_to_settle_ == 0) are_loans_lacked_ = false;
    const std::size_t begin = std::min(next_to_settle_, sessions_.size());
    const std::size_t end =
        std::min<std::size_t>(begin + options_.loans_settled_per_pass, sessions_.size());
    next_to_settle_ = end < sessions_.size() ? end : 0;
    for (std::size_t i = begin; i < end; ++i) {
        Session* const session = sessions_[i].get();
        const bool is_open = session != nullptr && session->state() == Session::State::kOpen;
        if (is_open && session->role() == Session::Role::kServer) session->settle_loans();
    }
    // A session that lacked loans in an earlier pass tries again after all others were asked.
    if (next_to_settle_ > 0 || are_loans_lacked_) arm_loan_timer();
}

void SessionHost::bury(Session& session) {
    const std::uint64_t index = index_of(session.handle_);
    session.connection_.reset();
    session.user_.on_gone(session);
    TrafficShare* const share = session.share_;
    const std::string share_name = session.share_name_;
    sessions_[index].reset();  // Its credits return to its share.
    if (share != nullptr && --share->sessions == 0) shares_.erase(share_name);
    free_indexes_.push_back(static_cast<std::uint32_t>(index));
    --count_;
    if (count_ == 0) empty_.wake_all();
}

void SessionHost::join_share(Session& session) {
    TrafficShare& share = shares_[session.share_name_];
    ++share.sessions;
    session.share_ = &share;
    session.message_grant_.belongs_to(share.message_credits);
}

std::size_t SessionHost::left_for(SendUse use) const {
    std::size_t kept = promised_;
    if (use == SendUse::kFops) kept += buffers_.size() / kReservedFromFops;
    if (use == SendUse::kControl) kept += buffers_.size() / kReservedFromControl;
    return free_buffers_.size() > kept ? free_buffers_.size() - kept : 0;
}

bool SessionHost::has_room(Session& session, SendUse use) {
    const std::size_t left = left_for(use);
    if (use == SendUse::kHandshake) {
        if (left > 0) return true;
        handshake_lacked_ = true;
    } else {
        TrafficShare& share = *session.share_;
        const std::size_t room = share.room(left);
        if (session.sends_in_flight_ >= std::max<std::size_t>(room / kShareOfSends, 1)) {
            session.wants_room_ = true;  // It gets a turn when one of its messages has been sent.
            return false;
        }
        const bool is_for_fops = use == SendUse::kFops;
        if (room > 0 && !(is_for_fops && !share.for_fops.waiting.empty())) return true;
        if (is_for_fops) {
            want_buffer_.wait(share.for_fops, session);
        } else {
            want_control_.wait(share.for_control, session);
        }
    }
    if (!shortage_.armed()) reactor_.arm(shortage_, after(reactor_.now(), kPatience));
    return false;
}

SendBuffer* SessionHost::take_buffer(Session& session, SendUse use) {
    TrafficShare* const share = session.share_;
    if (std::exchange(session.has_promise_, false)) {
        --promised_;  // The buffer counts in its share already.
    } else {
        if (!has_room(session, use)) return nullptr;
        if (share != nullptr) ++share->held;
    }
    SendBuffer* const buffer = free_buffers_.back();
    free_buffers_.pop_back();
    buffer->session = &session;
    buffer->share = share;
    buffer->sent_at = kNever;
    if (use == SendUse::kControl) wake_for_control();
    return buffer;
}

void SessionHost::give_back(SendBuffer& buffer) {
    if (buffer.share != nullptr) --buffer.share->held;
    buffer.session = nullptr;
    buffer.share = nullptr;
    free_buffers_.push_back(&buffer);
    wake_waiting();
    if (free_buffers_.size() == buffers_.size()) all_sent_.wake_all();
}

void SessionHost::end_promise(Session& session) {
    if (!std::exchange(session.has_promise_, false)) return;
    --promised_;
    --session.share_->held;
    wake_waiting();
}

void SessionHost::wake_waiting() {
    wake_for_control();
    const auto may_take = [this](const TrafficShare& share) {
        return share.room(left_for(SendUse::kFops)) > 0;
    };
    while (left_for(SendUse::kFops) > 0) {
        InBufferQueue* const place = want_buffer_.next(may_take);
        if (place == nullptr) return;
        auto& session = static_cast<Session&>(*place);
        session.has_promise_ = true;
        ++promised_;
        ++session.share_->held;
        session.wants_turn();
    }
}

// Wakes one session; when it has taken its buffer the next one is woken.
void SessionHost::wake_for_control() {
    const std::size_t left = left_for(SendUse::kControl);
    if (left == 0) return;
    InControlQueue* const place =
        want_control_.next([left](const TrafficShare& share) { return share.room(left) > 0; });
    if (place != nullptr) static_cast<Session&>(*place).wants_turn();
}

// Ends the session whose peer has received nothing for the longest time, if others wait for
// buffers. If buffers are left, only sessions of principals that wait because of their own share
// are considered.
void SessionHost::end_slowest() {
    const bool lacked = std::exchange(handshake_lacked_, false);
    const bool want_fops = want_buffer_.anybody();
    const bool want_control = want_control_.anybody();
    if (!want_fops && !want_control && !lacked) return;
    const bool none_is_left = lacked || (want_fops && left_for(SendUse::kFops) == 0) ||
                              (want_control && left_for(SendUse::kControl) == 0);
    Session* slowest = nullptr;
    for (const auto& each : buffers_) {
        Session* const session = each->session;
        if (session == nullptr || session->state() != Session::State::kOpen) continue;
        if (session->sends_in_flight_ == 0) continue;
        if (!none_is_left && !session->share_->waits()) continue;
        if (slowest == nullptr || session->send_moved_at_ < slowest->send_moved_at_) {
            slowest = session;
        }
    }
    const Instant now = reactor_.now();
    if (slowest == nullptr || slowest->send_moved_at_ > now - kPatience) {
        handshake_lacked_ = lacked;
        reactor_.arm(shortage_, after(now, kPatience / 10));
        return;
    }
    statistics_.expired.add(1);
    slowest->end(Errc::kTimedOut, "the peer takes no messages, and others wait for room");
    reactor_.arm(shortage_, after(now, kPatience / 100));
}

void SessionHost::answer_greetings() {
    for (std::uint32_t i = 0; i < kGreetingsPerTurn; ++i) {
        InGreetings* const next = greetings_.pop_front();
        if (next == nullptr) return;
        static_cast<Session*>(next)->answer_greeting();
    }
}

// Starts one part of each principal in turn, and of each of its sessions in turn, so that a client
// with a long queue does not delay others.
void SessionHost::start_transfers() {
    const auto may_take = [this](const TrafficShare& share) {
        return share.transfer_room(transfers_left()) > 0;
    };
    while (InTransferQueue* const next = want_transfer_.next(may_take)) {
        auto& session = static_cast<Session&>(*next);
        const std::uint32_t share =
            std::clamp(transfers_left() / kShareOfOne, 1U, kTransfersOfOneMax);
        // The session gets a turn when one of its transfers has ended.
        if (session.transfers_in_flight_ >= share) continue;
        Transfer* const transfer = session.transfers_waiting_.pop_front();
        if (transfer == nullptr) continue;
        ++transfers_in_flight_;
        ++session.share_->transfers_in_flight;
        if (session.transfers_in_flight_++ == 0) session.transfer_moved_at_ = reactor_.now();
        if (!session.transfers_waiting_.empty()) want_transfer_of(session);
        if (transfer->direction == Transfer::Direction::kPull) {
            session.connection_->read(*transfer);
        } else {
            session.connection_->write(*transfer);
        }
    }
}

// Principals without one may each have started one more.
std::uint32_t SessionHost::transfers_left() const {
    return kTransfersMax - std::min(transfers_in_flight_, kTransfersMax);
}

void SessionHost::want_transfer_of(Session& session) {
    want_transfer_.wait(session.share_->for_transfers, session);
}

void SessionHost::on_transferred(Session& session, Transfer& transfer) {
    --transfers_in_flight_;
    --session.share_->transfers_in_flight;
    --session.transfers_in_flight_;
    if (session.state_ == Session::State::kEnding) session.wants_end();
    if (transfer.result) {
        session.transfer_moved_at_ = reactor_.now();
        const std::size_t bytes = transfer.local.bytes.size();
        session.statistics_.bytes_transferred += bytes;
        const bool pulled = transfer.direction == Transfer::Direction::kPull;
        (pulled ? statistics_.bytes_pulled : statistics_.bytes_pushed).add(bytes);
    }
    if (!session.transfers_waiting_.empty()) want_transfer_of(session);
}

}  // namespace fopd::fabric

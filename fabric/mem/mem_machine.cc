#include "fabric/mem/mem_machine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/connection_errors.h"
#include "fabric/mem/mem_acceptor.h"

namespace fopd::fabric {

namespace {

using Kind = MemPacket::Kind;

// How many messages and bytes a connection may have in flight to a peer that takes none, like the
// buffers of a socket. The peer reports each quarter that it has taken, so the sender does not
// stall.
constexpr std::uint32_t kWindowCount = 64;
constexpr std::uint64_t kWindowBytes = 256U << 10;

constexpr Error kLost{.code = Errc::kClosed, .context = "connection lost"};
constexpr Error kNobody{.code = Errc::kNotFound, .context = "nobody listens"};

// Turns a packet into an answer to its sender.
std::unique_ptr<MemPacket> turned_back(std::unique_ptr<MemPacket> packet, Kind kind) {
    packet->kind = kind;
    packet->stray = false;
    std::swap(packet->from, packet->to);
    std::swap(packet->way, packet->back);
    packet->bytes.clear();
    return packet;
}

}  // namespace

// -- connections --

MemConnection::~MemConnection() {
    if (machine_ == nullptr) return;
    if (state_ == State::kConnected) tell_peer(Kind::kReset);
    machine_->in_flight_ -= in_flight_;
    machine_->connections_.erase(id_);
}

std::unique_ptr<MemPacket> MemConnection::packet(Kind kind) const {
    auto made = std::make_unique<MemPacket>();
    made->kind = kind;
    made->from = {.station = &machine_->station_, .connection = id_};
    made->to = peer_;
    made->way = ways_.out;
    made->back = ways_.back;
    return made;
}

void MemConnection::tell_peer(Kind kind) {
    peer_.station->push(packet(kind));
}

void MemConnection::start(TransferOp& op, Kind kind) {
    ENSURE(!op.in_flight);
    op.in_flight = true;
    ++in_flight_;
    if (machine_ == nullptr) return;  // Its process has ended.
    ENSURE(machine_->is_registered(op.local));
    ++machine_->in_flight_;
    if (state_ == State::kConnected) {
        waiting_.push_back({.op = &op, .kind = kind});
        pump();
    } else {
        const bool ended = state_ == State::kEnded;
        finish(op, std::unexpected(ended ? kEndedHere : kTooEarly));
    }
}

void MemConnection::pump() {
    while (!waiting_.empty() && transit_count_ < kWindowCount && transit_bytes_ < kWindowBytes) {
        const auto [op, kind] = waiting_.front();
        waiting_.pop_front();
        ++transit_count_;
        transit_bytes_ += op->local.bytes.size();
        auto sent = packet(kind);
        sent->size = op->local.bytes.size();
        sent->remote = op->remote;
        if (kind != Kind::kRead) {
            sent->set_bytes(op->local.bytes);
        }
        peer_.station->push(std::move(sent));
        if (kind == Kind::kMessage) {
            finish(*op, {});
        } else {
            away_.push_back({.op = op, .bytes = op->local.bytes.size()});
        }
    }
}

void MemConnection::settle(std::uint32_t count, std::uint64_t bytes) {
    transit_count_ -= count;
    transit_bytes_ -= bytes;
    pump();
}

void MemConnection::finish(TransferOp& op, const Result<void>& result) {
    op.result = result;
    done_.push_back(&op);
    if (!linked()) machine_->ready_.push_back(*this);
    machine_->wake_up();
}

MemConnection::Away MemConnection::answered() {
    ENSURE(!away_.empty());
    const Away oldest = away_.front();
    away_.pop_front();
    return oldest;
}

// The bytes of a write have left its memory with the packet.
bool MemConnection::give_up(TransferOp& transfer) {
    ENSURE(transfer.in_flight);
    if (machine_ == nullptr) return true;
    if (!machine_->network_.options_.can_give_up) return false;
    if (const auto away = std::ranges::find(away_, &transfer, &Away::op); away != away_.end()) {
        away->op = nullptr;
    } else if (const auto waiting = std::ranges::find(waiting_, &transfer, &Started::op);
               waiting != waiting_.end()) {
        waiting_.erase(waiting);
    } else {
        return true;  // It has ended.
    }
    finish(transfer, std::unexpected(kGivenUp));
    return true;
}

void MemConnection::end(const Error& why) {
    state_ = State::kEnded;
    while (!away_.empty()) {
        if (TransferOp* const op = answered().op) finish(*op, std::unexpected(why));
    }
    for (const Started& each : waiting_) finish(*each.op, std::unexpected(why));
    waiting_.clear();
}

// Operations that succeeded and are not completed yet are in flight, too.
void MemConnection::close() {
    if (machine_ == nullptr || state_ == State::kEnded) return;
    if (state_ == State::kConnected) tell_peer(Kind::kReset);
    for (TransferOp* each : done_) each->result = std::unexpected(kEndedHere);
    for (TransferOp* each : completing_) each->result = std::unexpected(kEndedHere);
    end(kEndedHere);
}

// -- the machine: set-up and memory --

MemMachine::MemMachine(MemNetwork& network, core::Reactor& reactor, MemStation& station,
                       MessageUser& messages, const MachineOptions& options)
    : network_(network),
      reactor_(reactor),
      station_(station),
      messages_(messages),
      options_(options),
      arrivals_(core::Random(station.seed())),
      keys_(core::mix(station.seed(), 1)) {
    reactor_.add_poller(*this);
}

MemMachine::~MemMachine() {
    for (const auto& [id, connection] : connections_) {
        if (connection->state_ == MemConnection::State::kConnected) {
            connection->tell_peer(Kind::kReset);
        }
        connection->state_ = MemConnection::State::kEnded;
        connection->machine_ = nullptr;
    }
    station_.close();
    for (auto& each : arrivals_.take_all()) MemStation::return_to_sender(std::move(each));
}

// Nothing to wait for: the machine has no resources of the kernel.
Task<void> MemMachine::stop() {
    co_return;
}

Result<void*> MemMachine::register_memory(std::span<std::byte> memory) {
    registered_.push_back(memory);
    return &registered_.back();
}

// Like hardware with address translation, refuses memory that is not registered.
bool MemMachine::is_registered(const LocalMemory& memory) const {
    if (memory.bytes.empty()) return true;
    for (const auto& region : registered_) {
        if (&region != memory.registration) continue;
        const auto before = std::less_equal<const std::byte*>();
        return before(region.data(), memory.bytes.data()) &&
               before(memory.bytes.data() + memory.bytes.size(), region.data() + region.size());
    }
    return false;
}

Result<RemoteMemory> MemMachine::open_memory(std::span<std::byte> memory, Access access) {
    const std::uint64_t key = keys_.next();
    ENSURE(opened_.open(key, memory, access));
    return RemoteMemory{.address = 0, .key = key};
}

void MemMachine::close_memory(const RemoteMemory& memory) {
    opened_.close(memory.key);
}

bool MemMachine::take_back_memory(const RemoteMemory& memory) {
    if (!network_.options_.can_give_up) return false;
    opened_.take_back(memory.key);
    return true;
}

// -- the machine: making connections --

std::unique_ptr<Connection> MemMachine::connect(const Address& peer,
                                                std::span<const std::byte> hello,
                                                ConnectionUser& user) {
    ENSURE(hello.size() <= kHelloBytesMax);
    const MemConnection::Ways ways{
        .out = &network_.link({.from = station_.host(), .to = peer.host}),
        .back = &network_.link({.from = peer.host, .to = station_.host()})};
    auto made = std::make_unique<MemConnection>(*this, ++last_id_, user, ways,
                                                peer.host + ':' + std::to_string(peer.port));
    made->target_ = peer;
    connections_.emplace(made->id_, made.get());
    auto packet = made->packet(Kind::kConnect);
    packet->set_bytes(hello);
    if (auto returned = request(peer, std::move(packet)); returned != nullptr) {
        // The packet seems to travel to the address and back.
        returned->stray = true;
        station_.push(std::move(returned));
    }
    return made;
}

std::unique_ptr<MemPacket> MemMachine::request(const Address& target,
                                               std::unique_ptr<MemPacket> packet) {
    packet->stray = false;
    if (target.scheme != kMemScheme) return packet;
    return network_.deliver_request({target.host, target.port}, std::move(packet));
}

std::unique_ptr<Connection> MemMachine::accept(std::unique_ptr<ConnectionRequest> request,
                                               std::span<const std::byte> answer,
                                               ConnectionUser& user) {
    ENSURE(answer.size() <= kHelloBytesMax);
    auto* const ours = dynamic_cast<MemRequest*>(request.get());
    ENSURE(ours != nullptr);
    const auto asked = ours->take();
    const MemConnection::Ways ways{.out = asked->back, .back = asked->way};
    auto made =
        std::make_unique<MemConnection>(*this, ++last_id_, user, ways, MemRequest::peer_of(*asked));
    connections_.emplace(made->id_, made.get());
    made->peer_ = asked->from;
    made->state_ = MemConnection::State::kConnected;

    auto own = made->packet(Kind::kAccepted);
    own->to = own->from;
    own->way = own->back = nullptr;
    station_.push(std::move(own));
    auto accepted = made->packet(Kind::kAccept);
    accepted->set_bytes(answer);
    made->peer_.station->push(std::move(accepted));
    return made;
}

MemConnection* MemMachine::find(std::uint64_t id) const {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return nullptr;
    return found->second->state_ == MemConnection::State::kEnded ? nullptr : found->second;
}

// -- the machine: its turn --

void MemMachine::wake_up() {
    reactor_.arm(wake_up_, reactor_.now());
}

bool MemMachine::poll() {
    const Instant now = reactor_.now();
    bool found = complete_done();
    take_in(now);
    // Each buffer takes one message a turn; other packets count the same.
    for (std::uint32_t budget = options_.receive_buffer_count; budget > 0; --budget) {
        auto packet = arrivals_.next(now);
        if (packet == nullptr) break;
        found = true;
        handle(std::move(packet));
    }
    const Instant due = ready_.empty() ? arrivals_.next_due() : now;
    if (due != kNever) reactor_.arm(wake_up_, due);
    return found;
}

void MemMachine::take_in(Instant now) {
    for (auto& each : station_.take()) {
        const std::uint64_t id = each->stray ? each->from.connection : each->to.connection;
        MemConnection* const connection = find(id);
        Instant none = Instant::min();
        const bool ordered = connection != nullptr && !each->stray;
        arrivals_.add(std::move(each), now, ordered ? connection->order_ : none);
    }
}

// Completes only operations that are done now; those that callbacks start are for the next poll.
// Callbacks may close and destroy any connection, which then leaves these lists.
bool MemMachine::complete_done() {
    core::IntrusiveList<MemConnection> round;
    while (MemConnection* const each = ready_.pop_front()) {
        each->completing_.swap(each->done_);
        round.push_back(*each);
    }
    const bool found = !round.empty();
    while (!round.empty()) {
        MemConnection& connection = round.front();
        if (connection.completing_.empty()) {
            connection.unlink();
            if (!connection.done_.empty()) ready_.push_back(connection);
            continue;
        }
        TransferOp& op = *connection.completing_.front();
        connection.completing_.pop_front();
        --connection.in_flight_;
        --in_flight_;
        op.in_flight = false;
        op.complete(op);
    }
    return found;
}

void MemMachine::handle(std::unique_ptr<MemPacket> packet) {
    if (packet->kind == Kind::kNudge) return;
    if (packet->kind == Kind::kDrop) {
        const auto* const host = reinterpret_cast<const char*>(packet->bytes.data());
        drop_connections_with({host, packet->bytes.size()});
        return;
    }
    if (packet->stray) {
        handle_stray(std::move(packet));
        return;
    }
    if (MemConnection* const connection = find(packet->to.connection); connection != nullptr) {
        handle_for(*connection, std::move(packet));
    } else if (packet->wants_answer()) {
        auto answer = turned_back(std::move(packet), Kind::kReset);
        answer->to.station->push(std::move(answer));
    }
}

// The packet has reached an address where nothing listens, and is answered from there.
void MemMachine::handle_stray(std::unique_ptr<MemPacket> packet) {
    MemConnection* const connection = find(packet->from.connection);
    if (connection == nullptr) return;
    Kind answer = Kind::kReset;
    if (packet->kind == Kind::kConnect) {
        // If an acceptor listens there by now, it gets the request.
        packet = request(connection->target_, std::move(packet));
        if (packet == nullptr) return;
        answer = Kind::kNobodyThere;
    }
    arrivals_.add(turned_back(std::move(packet), answer), reactor_.now(), connection->order_);
}

void MemMachine::handle_for(MemConnection& connection, std::unique_ptr<MemPacket> packet) {
    switch (packet->kind) {
        case Kind::kAccepted: connection.user_.on_connected({}); return;
        case Kind::kAccept:
            connection.peer_ = packet->from;
            connection.state_ = MemConnection::State::kConnected;
            connection.user_.on_connected(packet->bytes);
            return;
        case Kind::kRefuse: {
            const auto* const words = reinterpret_cast<const char*>(packet->bytes.data());
            lose(connection, kRefused, {words, packet->bytes.size()});
            return;
        }
        case Kind::kNobodyThere: lose(connection, kNobody); return;
        case Kind::kMessage: take_message(connection, *packet); return;
        case Kind::kTaken: connection.settle(packet->count, packet->size); return;
        case Kind::kRead:
        case Kind::kWrite: serve_transfer(connection, std::move(packet)); return;
        case Kind::kReadDone:
        case Kind::kWriteDone: {
            const MemConnection::Away away = connection.answered();
            const bool is_read = packet->kind == Kind::kReadDone;
            ENSURE(!is_read || packet->bytes.size() == away.bytes);
            if (away.op != nullptr) {
                core::copy_bytes(packet->bytes, away.op->local.bytes);
                connection.finish(*away.op, {});
            }
            connection.settle(1, away.bytes);
            return;
        }
        case Kind::kReset: lose(connection, kEndedThere); return;
        case Kind::kConnect:
        case Kind::kDrop:
        case Kind::kNudge: break;
    }
    ensure_failed("a packet of a connection", __FILE__, __LINE__);
}

void MemMachine::take_message(MemConnection& connection, const MemPacket& packet) {
    if (packet.bytes.size() > options_.receive_buffer_bytes) {
        connection.tell_peer(Kind::kReset);
        lose(connection, kTooLong);
        return;
    }
    connection.taken_count_ += 1;
    connection.taken_bytes_ += packet.bytes.size();
    if (connection.taken_count_ >= kWindowCount / 4 ||
        connection.taken_bytes_ >= kWindowBytes / 4) {
        auto taken = connection.packet(Kind::kTaken);
        taken->count = std::exchange(connection.taken_count_, 0);
        taken->size = std::exchange(connection.taken_bytes_, 0);
        connection.peer_.station->push(std::move(taken));
    }
    messages_.on_message(packet.bytes, &connection);
}

void MemMachine::serve_transfer(MemConnection& connection, std::unique_ptr<MemPacket> request) {
    const Access wanted = request->kind == Kind::kRead ? Access::kRead : Access::kWrite;
    const auto target = opened_.find(request->remote, request->size, wanted);
    if (!target) {
        connection.tell_peer(Kind::kReset);
        lose(connection, kNotOpened);
        return;
    }
    if (request->kind == Kind::kWrite) {
        if (!target->is_taken_back) core::copy_bytes(request->bytes, target->bytes);
        connection.tell_peer(Kind::kWriteDone);
        return;
    }
    auto answer = connection.packet(Kind::kReadDone);
    if (target->is_taken_back) {
        answer->bytes.resize(request->size);
    } else {
        answer->set_bytes(target->bytes);
    }
    connection.peer_.station->push(std::move(answer));
}

void MemMachine::lose(MemConnection& connection, const Error& why, std::string_view words) {
    // All operations in flight fail with kEndedThere.
    connection.end(kEndedThere);
    connection.user_.on_closed(why, words);
}

void MemMachine::drop_connections_with(std::string_view host) {
    std::vector<std::uint64_t> ids;
    for (const auto& [id, connection] : connections_) {
        if (connection->peer_.station == nullptr) continue;
        if (connection->peer_.station->host() == host) ids.push_back(id);
    }
    // A callback may end other connections.
    for (const std::uint64_t id : ids) {
        if (MemConnection* const connection = find(id)) lose(*connection, kLost);
    }
}

}  // namespace fopd::fabric

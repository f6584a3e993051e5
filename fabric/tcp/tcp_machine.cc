#include "fabric/tcp/tcp_machine.h"

#include <utility>

#include "core/copy_bytes.h"
#include "core/zeroed_array.h"
#include "fabric/tcp/tcp_acceptor.h"
#include "fop/prefix.h"

namespace fopd::fabric {

namespace {

// Encrypted connections receive everything there; other connections everything but large bodies.
constexpr std::size_t kArrivalsBytes = 256U << 10;

constexpr Error kTooManyIncomplete{.code = Errc::kNoSpace,
                                   .context = "too many messages are incomplete"};

}  // namespace

TcpMachine::TcpMachine(core::Reactor& reactor, MessageUser& messages, const MachineOptions& options,
                       const TcpOptions& tcp, Sockets& sockets)
    : reactor_(reactor),
      messages_(messages),
      options_(options),
      tcp_(tcp),
      arrivals_(kArrivalsBytes),
      aligned_(options.receive_buffer_bytes),
      sockets_{.sockets = sockets, .polled = {}, .closed = {}},
      is_simulated_(sockets.is_simulated()),
      sockets_gone_(reactor) {
    reactor_.add_poller(*this);
}

TcpMachine::~TcpMachine() {
    ENSURE(connection_count_ == 0);
    if (is_simulated_) sockets_.close_all();
    ENSURE(sockets_.count == 0);
    if (!zeros_.empty()) core::unmap_zeros(zeros_.data(), zeros_.size());
}

Task<void> TcpMachine::stop() {
    while (sockets_.count > 0) {
        // Without a deadline: polls that were cancelled complete at once.
        [[maybe_unused]] const auto woken = co_await sockets_gone_.wait({});
    }
}

// -- memory --

Result<void*> TcpMachine::register_memory(std::span<std::byte>) {
    return nullptr;  // The kernel copies.
}

Result<RemoteMemory> TcpMachine::open_memory(std::span<std::byte> memory, Access access) {
    RemoteMemory opened{.address = 0, .key = tcp_.random_key()};
    while (!opened_.open(opened.key, memory, access)) opened.key = tcp_.random_key();
    return opened;
}

void TcpMachine::close_memory(const RemoteMemory& memory) {
    opened_.close(memory.key);
}

bool TcpMachine::take_back_memory(const RemoteMemory& memory) {
    opened_.take_back(memory.key);
    return true;
}

std::span<std::byte> TcpMachine::zeros(std::size_t count) {
    if (zeros_.empty()) {
        auto* const mapped = static_cast<std::byte*>(core::map_zeros(kFrameTransferMax));
        if (mapped == nullptr) return {};
        zeros_ = {mapped, kFrameTransferMax};
    }
    return zeros_.first(count);
}

// -- connections --

std::unique_ptr<Connection> TcpMachine::connect(const Address& peer,
                                                std::span<const std::byte> hello,
                                                ConnectionUser& user) {
    ENSURE(hello.size() <= kHelloBytesMax);
    const auto name = socket_address(peer, kTcpScheme);
    auto made = std::make_unique<TcpConnection>(*this, user, name ? text_of(*name) : peer.host,
                                                TcpConnection::Side::kConnecting, hello);
    if (!name) {
        made->lose(name.error());
        return made;
    }
    auto socket = sockets_.sockets.connect(options_.host, *name);
    if (socket) {
        made->begin(std::move(*socket));
    } else {
        made->lose(socket.error());
    }
    return made;
}

std::unique_ptr<Connection> TcpMachine::accept(std::unique_ptr<ConnectionRequest> request,
                                               std::span<const std::byte> answer,
                                               ConnectionUser& user) {
    ENSURE(answer.size() <= kHelloBytesMax);
    auto& tcp = static_cast<TcpRequest&>(*request);
    auto made = std::make_unique<TcpConnection>(*this, user, tcp.peer(),
                                                TcpConnection::Side::kAccepting, answer);
    made->begin(tcp.take_socket());
    return made;
}

// -- the turn --

bool TcpMachine::poll() {
    // A reactor that spins must not go on while there is something left to send.
    bool found = !sockets_.closed.empty() || !sending_.empty();
    sockets_.close_some();
    if (sockets_.count == 0) sockets_gone_.wake_all();
    work_.begin_turn();
    while (HasWork* const each = work_.next()) {
        at_work_ = &static_cast<TcpConnection&>(static_cast<WantsWork&>(*each));
        at_work_->work();
        at_work_ = nullptr;
        work_.add_cost(kCostOfWork);
        work_.end_service();
        found = true;
    }
    return found;
}

void TcpMachine::make_room_for_records() {
    records_out_.resize(kRecordsOutBytes);
    decrypted_.resize(kRecordPlainMax);
}

void TcpMachine::limit_incomplete() {
    const std::size_t bytes_max =
        std::size_t{options_.receive_buffer_count} * options_.receive_buffer_bytes;
    while (incomplete_.bytes() > bytes_max) {
        static_cast<TcpConnection&>(incomplete_.worst()).lose(kTooManyIncomplete);
    }
}

void TcpMachine::flush_early(TcpConnection& connection) {
    if (!sending_.serve_early(static_cast<WantsFlush&>(connection))) return;
    connection.flush_once();
    sending_.end_service();
}

void TcpMachine::end_of_turn() {
    sending_.begin_turn();
    while (HasWork* const each = sending_.next()) {
        static_cast<TcpConnection&>(static_cast<WantsFlush&>(*each)).flush();
        sending_.end_service();
    }
    // Connections that are left are served in the next turn, for which the reactor does not sleep.
    if (sleep_max() == Duration{0}) want_turn();
}

void TcpMachine::deliver(std::span<const std::byte> message, const TcpConnection& by) {
    if (reinterpret_cast<std::uintptr_t>(message.data()) % fop::kMessageAlignment != 0) {
        core::copy_bytes(message, aligned_);
        message = std::span(aligned_).first(message.size());
    }
    count_call_back();
    messages_.on_message(message, &by);
}

Duration TcpMachine::sleep_max() {
    const bool is_idle = work_.empty() && sending_.empty() && sockets_.closed.empty();
    return is_idle ? Duration::max() : Duration{0};
}

}  // namespace fopd::fabric

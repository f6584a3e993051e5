#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "core/intrusive_list.h"
#include "core/poller.h"
#include "fabric/mem/mem_arrivals.h"
#include "fabric/mem/mem_network.h"
#include "fabric/opened_memory.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class MemMachine;

// One end of a connection. It is in its machine's list while it has operations to complete.
class MemConnection final : public Connection, public core::ListNode {
public:
    struct Ways {
        MemLink* out;
        MemLink* back;
    };

    MemConnection(MemMachine& machine, std::uint64_t id, ConnectionUser& user, const Ways& ways,
                  std::string peer)
        : machine_(&machine), id_(id), user_(user), ways_(ways), peer_name_(std::move(peer)) {}
    ~MemConnection() override;

    void send(TransferOp& op) override { start(op, MemPacket::Kind::kMessage); }
    void read(TransferOp& op) override { start(op, MemPacket::Kind::kRead); }
    void write(TransferOp& op) override { start(op, MemPacket::Kind::kWrite); }
    bool give_up(TransferOp& transfer) override;
    void close() override;
    std::uint32_t in_flight() const override { return in_flight_; }
    std::string peer() const override { return peer_name_; }

private:
    friend MemMachine;
    enum class State : std::uint8_t { kConnecting, kConnected, kEnded };
    struct Started {
        TransferOp* op;
        MemPacket::Kind kind;
    };
    struct Away {
        TransferOp* op;  // Null: it was given up.
        std::uint64_t bytes;
    };

    void start(TransferOp& op, MemPacket::Kind kind);
    // Sends the operations that the window permits.
    void pump();
    void finish(TransferOp& op, const Result<void>& result);
    // Nothing is started or received any more; operations in flight complete with `why`.
    void end(const Error& why);
    // The peer has taken `count` messages with `bytes` bytes, which leave the window.
    void settle(std::uint32_t count, std::uint64_t bytes);
    void tell_peer(MemPacket::Kind kind);
    std::unique_ptr<MemPacket> packet(MemPacket::Kind kind) const;
    // Removes the oldest operation that waits for an answer, because its answer has arrived.
    Away answered();

    MemMachine* machine_;  // Null: the machine was destroyed first.
    const std::uint64_t id_;
    ConnectionUser& user_;
    const Ways ways_;
    const std::string peer_name_;
    Address target_;  // The address that a connection connects to.
    State state_ = State::kConnecting;
    MemPacket::End peer_;
    Instant order_ = Instant::min();  // When the last packet to this connection arrives.

    std::uint32_t in_flight_ = 0;         // The operations in these queues.
    std::deque<Started> waiting_;         // For room in the window.
    std::deque<Away> away_;               // At the peer, which answers in this order.
    std::deque<TransferOp*> done_;        // Operations to complete in the next poll.
    std::deque<TransferOp*> completing_;  // Operations to complete in this poll.
    std::uint32_t transit_count_ = 0;
    std::uint64_t transit_bytes_ = 0;
    std::uint32_t taken_count_ = 0;  // Messages taken since the last notice to the peer.
    std::uint64_t taken_bytes_ = 0;
};

class MemMachine final : public TransferMachine, core::Poller {
public:
    MemMachine(MemNetwork& network, core::Reactor& reactor, MemStation& station,
               MessageUser& messages, const MachineOptions& options);
    ~MemMachine() override;

    Result<void*> register_memory(std::span<std::byte> memory) override;
    Result<RemoteMemory> open_memory(std::span<std::byte> memory, Access access) override;
    void close_memory(const RemoteMemory& memory) override;
    bool take_back_memory(const RemoteMemory& memory) override;
    std::unique_ptr<Connection> connect(const Address& peer, std::span<const std::byte> hello,
                                        ConnectionUser& user) override;
    std::unique_ptr<Connection> accept(std::unique_ptr<ConnectionRequest> request,
                                       std::span<const std::byte> answer,
                                       ConnectionUser& user) override;
    Task<void> stop() override;
    std::uint32_t in_flight() const override { return in_flight_; }

private:
    friend MemConnection;
    class WakeUp final : public core::Timer {
    public:
        WakeUp() : Timer([](core::Timer&) {}) {}
    };

    bool poll() override;
    void end_of_turn() override {}
    Duration sleep_max() override { return Duration::max(); }

    bool complete_done();
    void take_in(Instant now);
    void handle(std::unique_ptr<MemPacket> packet);
    void handle_for(MemConnection& connection, std::unique_ptr<MemPacket> packet);
    void handle_stray(std::unique_ptr<MemPacket> packet);
    void take_message(MemConnection& connection, const MemPacket& packet);
    void serve_transfer(MemConnection& connection, std::unique_ptr<MemPacket> request);
    void drop_connections_with(std::string_view host);
    // Ends a connection and tells its user.
    void lose(MemConnection& connection, const Error& why, std::string_view words = {});
    // Sends a request to connect; returns it if nothing listens there.
    std::unique_ptr<MemPacket> request(const Address& target, std::unique_ptr<MemPacket> packet);
    // The connection with this id; null if it has ended.
    MemConnection* find(std::uint64_t id) const;
    bool is_registered(const LocalMemory& memory) const;
    // Makes the reactor run another turn.
    void wake_up();

    MemNetwork& network_;
    core::Reactor& reactor_;
    MemStation& station_;
    MessageUser& messages_;
    const MachineOptions options_;
    MemArrivals arrivals_;
    core::Random keys_;
    WakeUp wake_up_;
    std::uint64_t last_id_ = 0;
    std::map<std::uint64_t, MemConnection*> connections_;  // All that exist, by id.
    core::IntrusiveList<MemConnection> ready_;             // With operations to complete.
    std::uint32_t in_flight_ = 0;
    std::deque<std::span<std::byte>> registered_;  // A registration is the address of its element.
    OpenedMemory opened_;
};

}  // namespace fopd::fabric

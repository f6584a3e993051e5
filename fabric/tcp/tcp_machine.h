#pragma once

#include <memory>
#include <vector>

#include "core/events.h"
#include "core/poller.h"
#include "core/wait_queue.h"
#include "fabric/opened_memory.h"
#include "fabric/tcp/tcp_connection.h"
#include "fabric/tcp/tcp_transport.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class TcpMachine final : public TransferMachine, core::Poller {
public:
    TcpMachine(core::Reactor& reactor, MessageUser& messages, const MachineOptions& options,
               const TcpOptions& tcp);
    ~TcpMachine() override;

    Result<void*> register_memory(std::span<std::byte> memory) override;
    Result<RemoteMemory> open_memory(std::span<std::byte> memory, Access access) override;
    void close_memory(const RemoteMemory& memory) override;
    std::unique_ptr<Connection> connect(const Address& peer, std::span<const std::byte> hello,
                                        ConnectionUser& user) override;
    std::unique_ptr<Connection> accept(std::unique_ptr<ConnectionRequest> request,
                                       std::span<const std::byte> answer,
                                       ConnectionUser& user) override;
    Task<void> stop() override;
    std::uint32_t in_flight() const override { return in_flight_; }

private:
    friend TcpConnection;
    bool poll() override;
    void flush() override;
    Duration sleep_max() override;
    Look look() const override { return Look::kIfItPays; }

    // Whether the connection whose work() runs still exists, after a call of the user.
    bool still_has(const TcpConnection* at_work) const { return at_work_ == at_work; }
    // Gives a message to the user, at an address that is aligned as messages are.
    void deliver(std::span<const std::byte> message);

    core::Reactor& reactor_;
    MessageUser& messages_;
    const MachineOptions options_;
    const TcpOptions tcp_;
    std::vector<std::byte> arrivals_;  // What was received last, of any connection.
    std::vector<std::byte> aligned_;   // Room for one message.
    OpenedMemory opened_;
    core::IntrusiveList<HasWork> with_work_;
    core::IntrusiveList<HasFrames> with_frames_;
    // The connection whose work() runs; null if it was destroyed meanwhile.
    TcpConnection* at_work_ = nullptr;
    core::IntrusiveList<InMachine> connections_;  // All that exist.
    Socket::Home sockets_;
    core::WaitQueue sockets_gone_;
    std::uint32_t in_flight_ = 0;
};

}  // namespace fopd::fabric

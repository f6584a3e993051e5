#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/events.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "fabric/tcp/newcomers.h"
#include "fabric/tcp/socket.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class TcpAcceptor;

// A peer's request to connect. May be used on any thread. When it is accepted, refused or
// destroyed, a message tells its acceptor.
class TcpRequest final : public ConnectionRequest {
public:
    TcpRequest(TcpAcceptor& acceptor, OwnedSocket socket, const SocketAddress& peer,
               std::span<const std::byte> hello);
    ~TcpRequest() override;

    std::span<const std::byte> hello() const override;
    std::string peer() const override { return text_of(peer_); }
    void refuse(std::string_view words) override;

    // Gives the socket to the machine that accepts the request. Called once.
    OwnedSocket take_socket();

private:
    friend TcpAcceptor;
    // The message to the acceptor that the request has ended. Until it is delivered, it is in the
    // acceptor's list.
    struct End final : core::Message, core::ListNode {
        explicit End(TcpAcceptor& owner) : Message(&deliver), acceptor(&owner) {}
        static void deliver(core::Message& message);
        TcpAcceptor* acceptor;  // Null: its simulated process has ended.
        bool is_sent = false;
    };

    Sockets& sockets_;
    OwnedSocket socket_;
    const SocketAddress peer_;
    std::array<std::byte, kHelloBytesMax> hello_{};
    std::size_t hello_bytes_;
    End* end_;  // Sent when the request ends; deleted after its delivery.
};

// Listens at a socket, and receives the first frame of each connection, which then becomes a
// request. Until then it is one of a limited number of newcomers, and has a limited time.
class TcpAcceptor final : public Acceptor {
public:
    TcpAcceptor(core::EventSink& events, core::Reactor& reactor, RequestUser& requests,
                const AcceptorOptions& options, Sockets& sockets);
    // REQUIRES: stopped. Does not hold at the end of a simulated world, where a process may end at
    // any time.
    ~TcpAcceptor() override;

    Result<void> open(const Address& address);
    const Address& address() const override { return address_; }
    Task<void> stop() override;

private:
    friend TcpRequest;
    enum class Progress : std::uint8_t { kWaits, kDone, kFailed };

    Task<void> accept_all();
    // Accepts the connections that wait in the kernel; false if the kernel could not, and a pause
    // is due.
    bool accept_some();
    Task<void> greet(std::unique_ptr<Newcomer> newcomer);
    Task<void> report_silent();
    Progress receive(Newcomer& newcomer);
    void hand_over(Newcomer& newcomer);

    core::EventSink& events_;
    core::Reactor& reactor_;
    RequestUser& requests_;
    const AcceptorOptions options_;
    Address address_;
    Sockets& sockets_;
    OwnedSocket socket_;
    Newcomers newcomers_;
    std::uint32_t silent_count_ = 0;  // Newcomers that were ended and are not reported.
    core::IntrusiveList<TcpRequest::End> requests_in_use_;  // Handed to the user, and not ended.
    core::Gate gate_;
    core::CancelSource stopping_;
    core::WaitQueue requests_ended_;
};

}  // namespace fopd::fabric

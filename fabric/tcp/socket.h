#pragma once

#include <string>

#include "core/intrusive_list.h"
#include "core/reactor.h"
#include "fabric/tcp/sockets.h"

namespace fopd::fabric {

// For logs: "tcp://10.0.0.5:31470".
std::string text_of(const SocketAddress& address);

// The socket of a connection, and the polls that watch it. It outlives the connection: it destroys
// itself when the kernel has completed these polls. Its home counts it.
class Socket final : public core::ListNode {
public:
    // Receives the events of a socket, within the reactor's wait.
    class User {
    public:
        virtual void on_readable() = 0;
        virtual void on_writable() = 0;

    protected:
        ~User() = default;
    };
    // Keeps the sockets whose connection has ended until they are closed.
    struct Home {
        Sockets& sockets;       // Outlive the home.
        std::size_t count = 0;  // All sockets that exist, open or closed.
        // Sockets that have ended, with polls that have not completed.
        core::IntrusiveList<Socket> polled;
        core::IntrusiveList<Socket> closed;  // Sockets that close_some() may close.

        // Closes a limited number of sockets, because closing takes time.
        void close_some();
        // Closes all that have ended. Only a simulated process may still have polls.
        void close_all();
    };

    Socket(core::Reactor& reactor, Home& home, OwnedSocket owned, User& user);

    int connect_error() { return home_.sockets.connect_error(fd()); }
    ssize_t receive(std::span<iovec> parts) { return home_.sockets.receive(fd(), parts); }
    ssize_t send(std::span<iovec> parts, Sockets::Follows follows) {
        return home_.sockets.send(fd(), parts, follows);
    }
    // Calls the user once when the socket is readable, or writable. Idempotent.
    void watch_input();
    void watch_output();
    bool watches_output() const { return output_.in_flight; }
    // Ends the connection; the user is not called any more. Called once.
    void end();

private:
    friend Home;
    ~Socket() { --home_.count; }

    struct Poll final : core::IoOp {
        Poll(Socket& owner, std::uint32_t events);
        Socket& socket;
    };
    int fd() const { return owned_.fd(); }
    static void on_complete(core::IoOp& op);
    void watch(Poll& poll);
    void settle();

    core::Reactor& reactor_;
    Home& home_;
    OwnedSocket owned_;
    User* user_;  // Null: the connection has ended.
    Poll input_;
    Poll output_;
};

}  // namespace fopd::fabric

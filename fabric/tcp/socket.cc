#include "fabric/tcp/socket.h"

#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

namespace fopd::fabric {

namespace {

// Closing a socket takes the kernel some microseconds.
constexpr int kClosedPerTurn = 64;

// How long the kernel keeps bytes that the peer does not take, after the end of a connection.
constexpr unsigned kUntakenMaxMs = 10'000;

}  // namespace

std::string text_of(const SocketAddress& address) {
    return format_address(address_of(kTcpScheme, address.get(), address.size));
}

void send_at_once(int socket) {
    const int on = 1;
    // Fails only for a socket that is closed, which the next call finds out.
    [[maybe_unused]] const int done =
        ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Socket::Poll::Poll(Socket& owner, std::uint32_t events) : IoOp(&on_complete), socket(owner) {
    code = core::IoCode::kPoll;
    file = {.fd = owner.fd()};
    poll_events = events;
}

Socket::Socket(core::Reactor& reactor, Home& home, core::OwnedFd fd, User& user)
    : reactor_(reactor),
      home_(home),
      fd_(std::move(fd)),
      user_(&user),
      input_(*this, POLLIN),
      output_(*this, POLLOUT) {
    ++home_.count;
}

void Socket::watch(Poll& poll) {
    if (!poll.in_flight) reactor_.submit(poll);
}

void Socket::watch_input() {
    watch(input_);
}

void Socket::watch_output() {
    watch(output_);
}

void Socket::end() {
    ENSURE(user_ != nullptr);
    user_ = nullptr;
    // The kernel drops the bytes that the peer has not taken by then.
    [[maybe_unused]] const int limited =
        ::setsockopt(fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUntakenMaxMs, sizeof kUntakenMaxMs);
    // The descriptor stays open while polls refer to it; the peer hears at once.
    ::shutdown(fd(), SHUT_RDWR);
    if (input_.in_flight) reactor_.cancel(input_);
    if (output_.in_flight) reactor_.cancel(output_);
    settle();
}

void Socket::settle() {
    if (!input_.in_flight && !output_.in_flight) home_.closed.push_back(*this);
}

void Socket::on_complete(core::IoOp& op) {
    auto& poll = static_cast<Poll&>(op);
    Socket& socket = poll.socket;
    if (socket.user_ == nullptr) return socket.settle();
    // The next receive or send finds the error.
    if (&poll == &socket.input_) {
        socket.user_->on_readable();
    } else {
        socket.user_->on_writable();
    }
}

void Socket::Home::close_some() {
    for (int i = 0; i < kClosedPerTurn; ++i) {
        Socket* const socket = closed.pop_front();
        if (socket == nullptr) return;
        delete socket;
    }
}

}  // namespace fopd::fabric

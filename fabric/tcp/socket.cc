#include "fabric/tcp/socket.h"

#include <utility>

#include <poll.h>

namespace fopd::fabric {

namespace {

// Closing a socket takes the kernel some microseconds.
constexpr int kClosedPerTurn = 64;

}  // namespace

std::string text_of(const SocketAddress& address) {
    return format_address(address_of(kTcpScheme, address.get(), address.size));
}

Socket::Poll::Poll(Socket& owner, std::uint32_t events) : IoOp(&on_complete), socket(owner) {
    code = core::IoCode::kPoll;
    file = {.fd = owner.fd()};
    poll_events = events;
}

Socket::Socket(core::Reactor& reactor, Home& home, OwnedSocket owned, User& user)
    : reactor_(reactor),
      home_(home),
      owned_(std::move(owned)),
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
    // The descriptor stays open while polls refer to it.
    home_.sockets.end(fd());
    home_.polled.push_back(*this);
    if (input_.in_flight) reactor_.cancel(input_);
    if (output_.in_flight) reactor_.cancel(output_);
    settle();
}

void Socket::settle() {
    if (input_.in_flight || output_.in_flight) return;
    unlink();
    home_.closed.push_back(*this);
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

void Socket::Home::close_all() {
    while (Socket* const socket = polled.pop_front()) {
        for (Poll* const poll : {&socket->input_, &socket->output_}) {
            if (poll->in_flight) sockets.abandon(*poll);
        }
        delete socket;
    }
    while (Socket* const socket = closed.pop_front()) delete socket;
}

}  // namespace fopd::fabric

#include "fabric/tcp/socket.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <netdb.h>
#include <poll.h>
#include <unistd.h>

namespace fopd::fabric {

namespace {

// Closing a socket takes the kernel some microseconds.
constexpr int kClosedPerTurn = 64;

}  // namespace

Result<SocketName> socket_name(const Address& address) {
    if (address.scheme != "tcp") {
        return std::unexpected(
            Error{.code = Errc::kInvalid, .context = "address of another transport"});
    }
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    if (::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &found) != 0) {
        return std::unexpected(Error{.code = Errc::kInvalid,
                                     .context = "host is no numeric address, resolve it first"});
    }
    SocketName name;
    name.size = found->ai_addrlen;
    std::memcpy(&name.storage, found->ai_addr, found->ai_addrlen);
    ::freeaddrinfo(found);
    return name;
}

Address address_of(const SocketName& name) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (::getnameinfo(name.get(), name.size, host.data(), host.size(), port.data(), port.size(),
                      NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return Address{.scheme = "tcp", .host = "unknown", .port = 0, .locality = {}};
    }
    return Address{.scheme = "tcp",
                   .host = host.data(),
                   .port = static_cast<std::uint16_t>(std::atoi(port.data())),
                   .locality = {}};
}

std::string text_of(const SocketName& name) {
    return format_address(address_of(name)).substr(std::strlen("tcp://"));
}

OwnedFd::~OwnedFd() {
    if (fd_ >= 0) ::close(fd_);
}

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

Socket::Poll::Poll(Socket& owner, std::uint32_t events) : IoOp(&on_complete), socket(owner) {
    code = core::IoCode::kPoll;
    file = {.fd = owner.fd()};
    poll_events = events;
}

Socket::Socket(core::Reactor& reactor, Home& home, OwnedFd fd, User& user)
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
    // What went wrong is found by the next receive or send.
    if (&poll == &socket.input_) {
        socket.user_->on_readable();
    } else {
        socket.user_->on_writable();
    }
}

bool Socket::Home::close_some() {
    for (int i = 0; i < kClosedPerTurn; ++i) {
        Socket* const socket = closed.pop_front();
        if (socket == nullptr) return true;
        delete socket;
    }
    return closed.empty();
}

}  // namespace fopd::fabric

#include "fabric/tcp/tcp_acceptor.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <poll.h>

#include "core/copy_bytes.h"

namespace fopd::fabric {

namespace {

constexpr int kBacklog = 1024;
// Connections accepted in a row before others get their turn.
constexpr int kAcceptsPerTurn = 32;
// Connections without a first frame. One more takes the place of an older one.
constexpr std::size_t kNewcomersMax = 1024;
// Connections that were ended because they said nothing are reported together, after this time.
constexpr Duration kReportPause = 1s;
// How long accepting pauses when there is no descriptor or memory for a connection.
constexpr Duration kShortagePause = 20ms;

}  // namespace

// -- requests --

TcpRequest::TcpRequest(TcpAcceptor& acceptor, OwnedSocket socket, const SocketAddress& peer,
                       std::span<const std::byte> hello)
    : sockets_(acceptor.sockets_),
      socket_(std::move(socket)),
      peer_(peer),
      hello_bytes_(hello.size()),
      end_(new End(acceptor)) {
    core::copy_bytes(hello, hello_);
    acceptor.requests_in_use_.push_back(*end_);
}

TcpRequest::~TcpRequest() {
    if (socket_.fd() >= 0) refuse({});
    if (end_->acceptor == nullptr) {
        delete end_;
        return;
    }
    end_->is_sent = true;
    end_->acceptor->reactor_.post(*end_);
}

std::span<const std::byte> TcpRequest::hello() const {
    return std::span(hello_).first(hello_bytes_);
}

void TcpRequest::refuse(std::string_view words) {
    words = words.substr(0, kRefusalBytesMax);
    std::array<std::byte, kFrameHeaderBytes + kRefusalBytesMax> bytes;
    const FrameHeader header = encode_frame(
        {.kind = FrameKind::kRefuse, .length = static_cast<std::uint32_t>(words.size())});
    core::copy_bytes(header, bytes);
    core::copy_bytes(std::as_bytes(std::span(words)), std::span(bytes).subspan(header.size()));
    // Nothing was sent before, so there is room. A peer that is gone needs no refusal.
    iovec part{.iov_base = bytes.data(), .iov_len = header.size() + words.size()};
    [[maybe_unused]] const ssize_t sent =
        sockets_.send(socket_.fd(), {&part, 1}, Sockets::Follows::kNothing);
    socket_ = OwnedSocket();
}

OwnedSocket TcpRequest::take_socket() {
    ENSURE(socket_.fd() >= 0);
    return std::move(socket_);
}

void TcpRequest::End::deliver(core::Message& message) {
    const std::unique_ptr<End> self(&static_cast<End&>(message));
    self->unlink();
    self->acceptor->requests_ended_.wake_all();
}

// -- the acceptor --

TcpAcceptor::TcpAcceptor(core::EventSink& events, core::Reactor& reactor, RequestUser& requests,
                         const AcceptorOptions& options, Sockets& sockets)
    : events_(events),
      reactor_(reactor),
      requests_(requests),
      options_(options),
      sockets_(sockets),
      newcomers_(kNewcomersMax),
      requests_ended_(reactor) {}

TcpAcceptor::~TcpAcceptor() {
    ENSURE(requests_in_use_.empty() || sockets_.is_simulated());
    while (TcpRequest::End* const each = requests_in_use_.pop_front()) {
        each->acceptor = nullptr;
        if (each->is_sent) delete each;
    }
}

Result<void> TcpAcceptor::open(const Address& address) {
    auto listening = sockets_.listen(address, kBacklog);
    if (!listening) return std::unexpected(listening.error());
    socket_ = std::move(listening->socket);
    address_ = std::move(listening->address);
    reactor_.spawn(gate_, accept_all());
    return {};
}

Task<void> TcpAcceptor::stop() {
    stopping_.cancel();
    newcomers_.cancel_all();
    co_await gate_.close(reactor_);
    while (!requests_in_use_.empty()) {
        // Without a deadline: every holder of a request returns it when it is told to end.
        [[maybe_unused]] const auto ended = co_await requests_ended_.wait({});
    }
    socket_ = OwnedSocket();
}

Task<void> TcpAcceptor::accept_all() {
    const core::WaitOptions wait{.cancel = &stopping_};
    while (!stopping_.cancelled()) {
        if (!accept_some()) {
            const auto slept = co_await reactor_.sleep_for(kShortagePause, &stopping_);
            if (!slept) co_return;
        }
        const auto ready = co_await reactor_.poll(socket_.fd(), POLLIN, wait);
        if (!ready && ready.error().code == Errc::kCancelled) co_return;
    }
}

bool TcpAcceptor::accept_some() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
        SocketAddress peer;
        const int accepted = sockets_.accept(socket_.fd(), peer);
        if (accepted < 0) {
            const int failed = -accepted;
            if (failed == EAGAIN) return true;
            if (failed == EMFILE || failed == ENFILE || failed == ENOBUFS || failed == ENOMEM) {
                const Error why = os_error(failed, "accept");
                const std::string text = describe(why);
                core::emit(events_, core::Level::kWarn, "fabric.accept_failed",
                           {{"address", std::string_view(address_.host)},
                            {"reason", std::string_view(text)}});
                return false;
            }
            continue;  // A peer that has gone again.
        }
        auto newcomer = std::make_unique<Newcomer>(OwnedSocket(sockets_, accepted), peer);
        // The coroutine of a newcomer that loses its place ends in the next turn. Until then up to
        // kAcceptsPerTurn descriptors more are open.
        newcomers_.add(*newcomer);
        reactor_.spawn(gate_, greet(std::move(newcomer)));
    }
    return true;
}

Task<void> TcpAcceptor::greet(std::unique_ptr<Newcomer> newcomer) {
    const core::WaitOptions wait{.deadline = after(reactor_.now(), options_.silence_max),
                                 .cancel = &newcomer->leave};
    Progress progress = receive(*newcomer);
    bool is_late = false;
    while (progress == Progress::kWaits) {
        const auto ready = co_await reactor_.poll(newcomer->socket.fd(), POLLIN, wait);
        is_late = !ready;
        progress = is_late ? Progress::kFailed : receive(*newcomer);
    }
    newcomers_.remove(*newcomer);
    if (stopping_.cancelled()) co_return;
    if (progress == Progress::kDone) {
        hand_over(*newcomer);
    } else if (!is_late) {
        const auto sent = std::span(newcomer->bytes).first(newcomer->count);
        requests_.on_stranger({.kind = stranger_kind(sent), .peer = text_of(newcomer->peer)});
    } else if (++silent_count_ == 1) {
        reactor_.spawn(gate_, report_silent());
    }
}

Task<void> TcpAcceptor::report_silent() {
    // Early when the acceptor stops.
    [[maybe_unused]] const auto slept = co_await reactor_.sleep_for(kReportPause, &stopping_);
    requests_.on_silent(std::exchange(silent_count_, 0));
}

TcpAcceptor::Progress TcpAcceptor::receive(Newcomer& newcomer) {
    for (;;) {
        std::size_t wanted = kFrameHeaderBytes;
        if (newcomer.count >= kFrameHeaderBytes) {
            const auto frame = decode_frame(std::span(newcomer.bytes).first<kFrameHeaderBytes>());
            if (!frame || frame->kind != FrameKind::kConnect) return Progress::kFailed;
            wanted += frame->length;
            if (newcomer.count == wanted) return Progress::kDone;
        }
        // Not more, because the machine that accepts the connection receives the rest.
        const auto rest = std::span(newcomer.bytes).first(wanted).subspan(newcomer.count);
        iovec part{.iov_base = rest.data(), .iov_len = rest.size()};
        const ssize_t received = sockets_.receive(newcomer.socket.fd(), {&part, 1});
        if (received == -EINTR) continue;
        if (received == -EAGAIN) return Progress::kWaits;
        if (received <= 0) return Progress::kFailed;
        newcomer.count += static_cast<std::size_t>(received);
        // Who speaks something else is not waited for until it has sent as much as a header has.
        if (!may_begin_frame(std::span(newcomer.bytes).first(newcomer.count))) {
            return Progress::kFailed;
        }
    }
}

void TcpAcceptor::hand_over(Newcomer& newcomer) {
    const auto hello = std::span(newcomer.bytes).first(newcomer.count).subspan(kFrameHeaderBytes);
    requests_.on_request(
        std::make_unique<TcpRequest>(*this, std::move(newcomer.socket), newcomer.peer, hello));
}

}  // namespace fopd::fabric

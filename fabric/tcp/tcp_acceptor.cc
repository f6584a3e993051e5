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

TcpRequest::TcpRequest(TcpAcceptor& acceptor, core::OwnedFd fd, const SocketAddress& peer,
                       std::span<const std::byte> hello)
    : fd_(std::move(fd)), peer_(peer), hello_bytes_(hello.size()), end_(new End(acceptor)) {
    core::copy_bytes(hello, hello_);
    ++acceptor.request_count_;
}

TcpRequest::~TcpRequest() {
    if (fd_.get() >= 0) refuse({});
    end_->acceptor.reactor_.post(*end_);
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
    [[maybe_unused]] const ssize_t sent =
        ::send(fd_.get(), bytes.data(), header.size() + words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    fd_ = core::OwnedFd();
}

core::OwnedFd TcpRequest::take_socket() {
    ENSURE(fd_.get() >= 0);
    return std::move(fd_);
}

void TcpRequest::End::deliver(core::Message& message) {
    const std::unique_ptr<End> self(&static_cast<End&>(message));
    self->acceptor.request_ended();
}

// -- the acceptor --

TcpAcceptor::TcpAcceptor(core::EventSink& events, core::Reactor& reactor, RequestUser& requests,
                         const AcceptorOptions& options)
    : events_(events),
      reactor_(reactor),
      requests_(requests),
      options_(options),
      newcomers_(kNewcomersMax),
      requests_ended_(reactor) {}

TcpAcceptor::~TcpAcceptor() {
    ENSURE(request_count_ == 0);
}

Result<void> TcpAcceptor::open(const Address& address) {
    auto listening = listening_socket(address, kTcpScheme, kBacklog);
    if (!listening) return std::unexpected(listening.error());
    fd_ = std::move(*listening);
    SocketAddress real;
    if (::getsockname(fd_.get(), real.get(), &real.size) != 0) {
        return std::unexpected(os_error(errno, "listen"));
    }
    address_ = address;
    address_.port = address_of(kTcpScheme, real.get(), real.size).port;
    reactor_.spawn(gate_, accept_all());
    return {};
}

Task<void> TcpAcceptor::stop() {
    stopping_.cancel();
    newcomers_.cancel_all();
    co_await gate_.close(reactor_);
    while (request_count_ > 0) {
        // Without a deadline: every holder of a request returns it when it is told to end.
        [[maybe_unused]] const auto ended = co_await requests_ended_.wait({});
    }
    fd_ = core::OwnedFd();
}

void TcpAcceptor::request_ended() {
    --request_count_;
    requests_ended_.wake_all();
}

Task<void> TcpAcceptor::accept_all() {
    const core::WaitOptions wait{.cancel = &stopping_};
    while (!stopping_.cancelled()) {
        if (!accept_some()) {
            const auto slept = co_await reactor_.sleep_for(kShortagePause, &stopping_);
            if (!slept) co_return;
        }
        const auto ready = co_await reactor_.poll(fd_.get(), POLLIN, wait);
        if (!ready && ready.error().code == Errc::kCancelled) co_return;
    }
}

bool TcpAcceptor::accept_some() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
        SocketAddress peer;
        core::OwnedFd fd(
            ::accept4(fd_.get(), peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd.get() < 0) {
            if (errno == EAGAIN) return true;
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                const Error why = os_error(errno, "accept");
                const std::string text = describe(why);
                core::emit(events_, core::Level::kWarn, "fabric.accept_failed",
                           {{"address", std::string_view(address_.host)},
                            {"reason", std::string_view(text)}});
                return false;
            }
            continue;  // A peer that has gone again.
        }
        send_at_once(fd.get());
        auto newcomer = std::make_unique<Newcomer>(std::move(fd), peer);
        // The coroutine of a newcomer that loses its place ends in this turn.
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
        const auto ready = co_await reactor_.poll(newcomer->fd.get(), POLLIN, wait);
        is_late = !ready;
        progress = is_late ? Progress::kFailed : receive(*newcomer);
    }
    newcomers_.remove(*newcomer);
    if (progress == Progress::kDone && !stopping_.cancelled()) hand_over(*newcomer);
    if (is_late && !stopping_.cancelled() && ++silent_count_ == 1) {
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
        const auto place = std::span(newcomer.bytes).first(wanted).subspan(newcomer.count);
        const ssize_t received =
            ::recv(newcomer.fd.get(), place.data(), place.size(), MSG_DONTWAIT);
        if (received < 0 && errno == EINTR) continue;
        if (received < 0 && errno == EAGAIN) return Progress::kWaits;
        if (received <= 0) return Progress::kFailed;
        newcomer.count += static_cast<std::size_t>(received);
    }
}

void TcpAcceptor::hand_over(Newcomer& newcomer) {
    const auto hello = std::span(newcomer.bytes).first(newcomer.count).subspan(kFrameHeaderBytes);
    requests_.on_request(
        std::make_unique<TcpRequest>(*this, std::move(newcomer.fd), newcomer.peer, hello));
}

}  // namespace fopd::fabric

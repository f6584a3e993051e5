#include "fabric/ofi/ofi_acceptor.h"

#include <algorithm>

#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

namespace fopd::fabric {

namespace {

// The library may lose a wake-up of its descriptor; this limits the delay.
constexpr Duration kWatchCap = 100ms;
// libfabric accepts one connection for each read of the event queue. One wake makes at most
// kReadsPerWake rounds of as many reads, limited by a token bucket: kReadsSaved at first, and
// kReadsPerRest more for each kRest. A wake takes a token for each request, but at least
// kReadsPerWake. So a flood of connections uses less than a tenth of the locality's time, and
// further connections wait in the kernel's queue.
constexpr unsigned kReadsPerWake = 8;
constexpr unsigned kReadsSaved = 1024;
constexpr unsigned kReadsPerRest = 64;
constexpr Duration kRest = 20ms;
// Wakes without a request. Many in a row mean that there is no descriptor left for the connection
// that waits; then the acceptor waits longer.
constexpr unsigned kFruitlessMax = 64;
constexpr Duration kFruitlessPause = 1ms;
// How often stop() tries to end silent sockets and to make the library close them.
constexpr unsigned kLastSweeps = 8;

}  // namespace

// -- requests --

OfiRequest::~OfiRequest() {
    give_back();
}

void OfiRequest::give_back() {
    if (arrival_ == nullptr) return;
    OfiArrival& arrival = *std::exchange(arrival_, nullptr);
    arrival.acceptor.reactor().post(arrival);
}

std::span<const std::byte> OfiRequest::hello() const {
    ENSURE(arrival_ != nullptr);
    return std::span(arrival_->hello).first(arrival_->hello_bytes);
}

std::string OfiRequest::peer() const {
    ENSURE(arrival_ != nullptr);
    const fi_info& info = *arrival_->info;
    return format_address(address_of(arrival_->acceptor.provider().options.scheme,
                                     static_cast<const sockaddr*>(info.dest_addr),
                                     info.dest_addrlen));
}

void OfiRequest::refuse(std::string_view words) {
    ENSURE(arrival_ != nullptr);
    arrival_->words = words;
    give_back();
}

// -- the acceptor --

OfiAcceptor::OfiAcceptor(const Provider& provider, core::Reactor& reactor, RequestUser& requests,
                         const AcceptorOptions& options)
    : provider_(provider),
      reactor_(reactor),
      requests_(requests),
      options_(options),
      returned_(reactor) {}

OfiAcceptor::~OfiAcceptor() {
    ENSURE(arrivals_ == 0);
}

Result<void> OfiAcceptor::open(const Address& address) {
    const auto bound = socket_address(address, provider_.options.scheme);
    if (!bound) return std::unexpected(bound.error());
    const OwnedInfo info = provider_.info_from(*bound);
    if (!info) return std::unexpected(Error{.code = Errc::kNoSpace, .context = "listen"});

    fi_eq_attr attributes{};
    attributes.wait_obj = FI_WAIT_FD;
    fid_eq* events = nullptr;
    if (const int failed = fi_eq_open(provider_.fabric.get(), &attributes, &events, nullptr);
        failed != 0) {
        return std::unexpected(provider_error(failed, "fi_eq_open"));
    }
    events_.reset(events);

    fid_pep* endpoint = nullptr;
    if (const int failed = fi_passive_ep(provider_.fabric.get(), info.get(), &endpoint, nullptr);
        failed != 0) {
        return std::unexpected(provider_error(failed, "bind"));
    }
    endpoint_.reset(endpoint);
    if (const int failed = fi_pep_bind(endpoint, &events->fid, 0); failed != 0) {
        return std::unexpected(provider_error(failed, "fi_pep_bind"));
    }
    if (const int failed = fi_listen(endpoint); failed != 0) {
        return std::unexpected(provider_error(failed, "listen"));
    }

    SocketAddress real;
    std::size_t real_bytes = real.size;
    if (const int failed = fi_getname(&endpoint->fid, real.get(), &real_bytes); failed != 0) {
        return std::unexpected(provider_error(failed, "fi_getname"));
    }
    address_ = address;
    address_.port = address_of(address.scheme, real.get(), real_bytes).port;

    std::size_t option_bytes = sizeof words_bytes_max_;
    if (fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &words_bytes_max_,
                  &option_bytes) != 0) {
        words_bytes_max_ = kHelloBytesMax;
    }

    int fd = -1;
    if (const int failed = fi_control(&events->fid, FI_GETWAIT, &fd); failed != 0) {
        return std::unexpected(provider_error(failed, "event queue descriptor"));
    }
    if (provider_.is_tcp()) {
        silent_.emplace(reactor_, *real.get());
        if (const auto ready = silent_->open(); !ready) return ready;
        reactor_.spawn(gate_, end_silent());
    }
    watch_.emplace(reactor_, fd, POLLIN);
    reactor_.spawn(gate_, watch_requests());
    return {};
}

Task<void> OfiAcceptor::stop() {
    stopping_.cancel();
    co_await watch_->stop();
    co_await gate_.close(reactor_);

    // Only the library can close the descriptor of a connection that is not complete. It does so at
    // the end of the stream, while the endpoint is open.
    for (unsigned i = 0; silent_ && i < kLastSweeps; ++i) {
        const std::uint32_t ended = co_await silent_->end_all();
        if (ended == 0) break;
        for (std::uint32_t j = 0; j < ended; ++j) read_requests();
    }
    while (arrivals_ > 0) {
        // Without a deadline: every holder of a request returns it when it is told to end.
        [[maybe_unused]] const auto returned = co_await returned_.wait({});
    }
    endpoint_.reset();
    events_.reset();
    silent_.reset();
}

Task<void> OfiAcceptor::watch_requests() {
    fid* const waited[] = {&events_->fid};
    unsigned fruitless = 0;
    unsigned reads_left = kReadsSaved;
    Instant rested_at = reactor_.now();  // Up to here counted in `reads_left`.
    auto woken = core::FdWatch::Wake::kReady;
    while (woken != core::FdWatch::Wake::kCancelled) {
        const auto rests = static_cast<std::uint64_t>((reactor_.now() - rested_at) / kRest);
        rested_at = after(rested_at, static_cast<std::int64_t>(rests) * kRest);
        reads_left = static_cast<unsigned>(
            std::min<std::uint64_t>(reads_left + rests * kReadsPerRest, kReadsSaved));
        if (reads_left == 0) {
            const auto slept = co_await reactor_.sleep_for(kRest, &stopping_);
            if (!slept) co_return;
            continue;
        }
        std::uint32_t requests = 0;
        for (unsigned i = 0; i < kReadsPerWake && requests < reads_left; ++i)
            requests += read_requests();
        reads_left -= std::min(reads_left, std::max(requests, kReadsPerWake));
        if (woken == core::FdWatch::Wake::kCap && requests > 0) watch_->missed_wake();
        fruitless = requests > 0 || woken == core::FdWatch::Wake::kCap ? 0 : fruitless + 1;
        if (fruitless == kFruitlessMax) {
            fruitless = 0;
            [[maybe_unused]] const auto slept =
                co_await reactor_.sleep_for(kFruitlessPause, &stopping_);
        }
        // The descriptor must not be waited for unless fi_trywait() permits it.
        if (fi_trywait(provider_.fabric.get(), const_cast<fid**>(waited), 1) == -FI_EAGAIN) {
            co_await reactor_.yield();
            woken = stopping_.cancelled() ? core::FdWatch::Wake::kCancelled
                                          : core::FdWatch::Wake::kReady;
            continue;
        }
        woken = co_await watch_->wait(kWatchCap, &stopping_);
    }
}

Task<void> OfiAcceptor::end_silent() {
    while (true) {
        const auto slept = co_await reactor_.sleep_for(options_.silence_max, &stopping_);
        if (!slept) co_return;
        // Sockets whose request has come meanwhile are not silent.
        read_requests();
        const std::uint32_t ended = co_await silent_->sweep();
        if (ended > 0) requests_.on_silent(ended);
    }
}

// Returns the number of requests.
std::uint32_t OfiAcceptor::read_requests() {
    std::uint32_t count = 0;
    while (count < kReadsPerWake && read_request()) ++count;
    return count;
}

bool OfiAcceptor::read_request() {
    ConnectionEvent event;
    const ssize_t size = event.read(*events_);
    if (size == -FI_EAVAIL) {
        log_error();
        return true;
    }
    if (size < 0) return false;
    if (event.kind != FI_CONNREQ) return true;

    auto* const arrival = new OfiArrival(*this, OwnedInfo(event.entry().info), &take_back);
    ++arrivals_;
    const auto& peer = *static_cast<const sockaddr*>(arrival->info->dest_addr);
    if (silent_) arrival->visit = silent_->expect(peer);
    auto request = std::make_unique<OfiRequest>(*arrival);
    const auto hello = event.data();
    if (hello.size() > kHelloBytesMax) {
        request->refuse("connect data too long");
        return true;
    }
    arrival->hello_bytes = hello.size();
    std::ranges::copy(hello, arrival->hello.begin());
    if (stopping_.cancelled()) return true;  // Its destructor refuses it.
    requests_.on_request(std::move(request));
    return true;
}

void OfiAcceptor::log_error() {
    fi_eq_err_entry entry{};
    if (fi_eq_readerr(events_.get(), &entry, 0) < 0) return;
    core::emit(provider_.events, core::Level::kWarn, "fabric.accept_failed",
               {{"address", std::string_view(address_.host)},
                {"reason", std::string_view(::fi_strerror(entry.err))}});
}

void OfiAcceptor::take_back(core::Message& message) {
    const std::unique_ptr<OfiArrival> arrival(&static_cast<OfiArrival&>(message));
    OfiAcceptor& self = arrival->acceptor;
    if (!arrival->taken) {
        // The first byte tells a refusal from a closed port, which sends no data.
        std::string data = "!" + arrival->words.substr(0, kRefusalBytesMax);
        data.resize(std::min(data.size(), self.words_bytes_max_));
        if (const int failed =
                fi_reject(self.endpoint_.get(), arrival->info->handle, data.data(), data.size());
            failed != 0) {
            core::emit(self.provider_.events, core::Level::kDebug, "fabric.refuse_failed",
                       {{"reason", std::string_view(::fi_strerror(-failed))}});
        }
        if (arrival->visit) arrival->visit->store(false, std::memory_order_release);
    }
    --self.arrivals_;
    self.returned_.wake_all();
}

}  // namespace fopd::fabric

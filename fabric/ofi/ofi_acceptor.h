#pragma once

#include <array>
#include <string>

#include "core/fd_watch.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "fabric/ofi/ofi_provider.h"
#include "fabric/ofi/ofi_silent_sockets.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class OfiAcceptor;

// A request in flight between threads. It returns to its acceptor's reactor, where the request is
// refused unless an endpoint has taken it over.
struct OfiArrival final : core::Message {
    OfiArrival(OfiAcceptor& owner, OwnedInfo request, Deliver deliver)
        : Message(deliver), acceptor(owner), info(std::move(request)) {}

    OfiAcceptor& acceptor;
    OwnedInfo info;
    std::array<std::byte, kHelloBytesMax> hello{};
    std::size_t hello_bytes = 0;
    SilentSockets::Visit visit;
    bool taken = false;
    std::string words;
};

class OfiRequest final : public ConnectionRequest {
public:
    explicit OfiRequest(OfiArrival& arrival) : arrival_(&arrival) {}
    ~OfiRequest() override;

    std::span<const std::byte> hello() const override;
    std::string peer() const override;
    void refuse(std::string_view words) override;

    OfiArrival& arrival() { return *arrival_; }

private:
    void give_back();

    OfiArrival* arrival_;  // Null: it is returning.
};

// Listens with a passive endpoint and an event queue of its own.
class OfiAcceptor final : public Acceptor {
public:
    OfiAcceptor(const Provider& provider, core::Reactor& reactor, RequestUser& requests,
                const AcceptorOptions& options);
    ~OfiAcceptor() override;

    Result<void> open(const Address& address);
    const Address& address() const override { return address_; }
    Task<void> stop() override;

    const Provider& provider() const { return provider_; }
    core::Reactor& reactor() { return reactor_; }

private:
    Task<void> watch_requests();
    Task<void> end_silent();
    std::uint32_t read_requests();
    bool read_request();
    void log_error();
    static void take_back(core::Message& message);

    const Provider& provider_;
    core::Reactor& reactor_;
    RequestUser& requests_;
    const AcceptorOptions options_;
    Address address_;
    std::size_t words_bytes_max_ = 0;

    OwnedFid<fid_eq> events_;
    OwnedFid<fid_pep> endpoint_;
    std::optional<core::FdWatch> watch_;
    std::optional<SilentSockets> silent_;

    core::Gate gate_;
    core::CancelSource stopping_;
    std::uint64_t arrivals_ = 0;  // Requests that have not returned.
    core::WaitQueue returned_;
};

}  // namespace fopd::fabric

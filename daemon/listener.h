#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "core/events.h"
#include "core/mailbox.h"
#include "daemon/locality.h"
#include "fabric/transport.h"

namespace fopd::daemon {

// Takes the connection requests of a node and hands each to the locality it asks for, or to the
// next one in turn. Lives on the reactor of the first locality.
class Listener final : fabric::RequestUser {
public:
    Listener(std::vector<Locality*> localities, core::EventSink& events);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    Result<fabric::Address> listen(fabric::Transport& transport, const fabric::Address& address,
                                   const fabric::AcceptorOptions& options);
    // Once, if it ever listened; before the localities are closed.
    Task<void> stop();

private:
    class Handover;

    void on_request(std::unique_ptr<fabric::ConnectionRequest> request) override;
    void on_silent(std::uint32_t count) override;

    const std::vector<Locality*> localities_;
    core::EventSink& events_;
    std::vector<std::unique_ptr<fabric::Acceptor>> acceptors_;
    std::size_t next_ = 0;
    std::list<Handover> handovers_;  // On their way, there or back.
};

}  // namespace fopd::daemon

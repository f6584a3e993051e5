#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "core/events.h"
#include "core/mailbox.h"
#include "daemon/locality.h"
#include "daemon/stranger_log.h"
#include "fabric/transport.h"

namespace fopd::daemon {

// Accepts the node's connection requests and hands each to the locality it names, otherwise
// round-robin. Lives on the reactor of the first locality.
class Listener final : fabric::RequestUser {
public:
    Listener(std::vector<Locality*> localities, core::EventSink& events);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    Result<fabric::Address> listen(fabric::Transport& transport, const fabric::Address& address,
                                   const fabric::AcceptorOptions& options);
    // Stops listening. Called once, before the localities are closed, if listen() was ever called.
    Task<void> stop();

private:
    class Handover;

    void on_request(std::unique_ptr<fabric::ConnectionRequest> request) override;
    void on_silent(std::uint32_t count) override;
    void on_stranger(const fabric::Stranger& stranger) override;

    const std::vector<Locality*> localities_;
    core::EventSink& events_;
    StrangerLog strangers_;
    std::vector<std::unique_ptr<fabric::Acceptor>> acceptors_;
    std::size_t next_ = 0;
    std::list<Handover> handovers_;        // Requests in transit to a locality or back.
    std::vector<std::size_t> in_transit_;  // The number of these, by locality.
};

}  // namespace fopd::daemon

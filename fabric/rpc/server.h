#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/timer_heap.h"
#include "fabric/rpc/client_records.h"
#include "fabric/rpc/handshake_places.h"
#include "fabric/rpc/incoming.h"
#include "fabric/session/session_host.h"

namespace fopd::fabric {

struct ServerOptions {
    std::uint16_t locality = 0;
    // Of the node: another one after each start.
    std::uint64_t incarnation = 0;
    std::uint32_t sessions_max = 20'000;
    // Connections on their way to a session; those that came to nothing count for as long as a
    // handshake may take.
    std::uint32_t handshakes_max = 1024;
    // How long a client without a session may come back for what it asked, and how many such
    // clients are kept.
    Duration client_kept{5min};
    std::uint32_t clients_kept_max = 4096;
    // Memory for replies that clients may come back for.
    std::uint64_t reply_bytes_max = 128U << 20;
};

using fop::Admission;

// A session as others see it.
struct SessionInfo {
    std::uint64_t id = 0;
    std::string peer;
    fop::ClientId client{};
    std::string principal;
    std::string user;
    Duration age{};
    Duration idle{};
    Session::Statistics statistics;
    std::uint32_t fops_held = 0;
    std::uint32_t fops_waiting = 0;  // Of them, for their turn.
    std::uint32_t fop_credits = 0;
    std::uint32_t fop_loans = 0;  // Beside the credits, for what waits.
};

// A fop that the store remembers, whose reply its client may not have.
struct UnheardFop {
    fop::ClientId client{};
    std::string principal;
    std::uint64_t request = 0;
};

// The server's side of RPC at one locality: takes requests out of messages, hands them to whoever
// runs them, and sends the replies, those of a turn together. A fop that must not run twice, and
// that the store does not remember, is remembered with its reply until the client has it, so that a
// client whose session was lost gets the same answer again instead.
//
// Lives on the reactor of its host.
class Server final : core::Timer {
public:
    Server(SessionHost& host, IncomingUser& user, const ServerOptions& options);
    // Requires: the host is closed, and every fop was replied to; or the world ends.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // What transfers go through: memory of the locality, to be registered with the hardware.
    Result<void> use_memory(std::span<std::byte> memory);
    void admit(Admission admission) { admission_ = std::move(admission); }
    void accept(std::unique_ptr<ConnectionRequest> request);
    // Counts it and says why.
    void refuse(std::unique_ptr<ConnectionRequest> request, std::string_view words);
    void count_silent(std::uint32_t count) { host_.count_silent(count); }

    // New clients are refused from now on, and those there are told to send no more. What arrives
    // all the same is still handed on.
    void drain();

    // Ends sessions that would not be let in as they were; how many.
    std::size_t end_outdated();
    std::vector<SessionInfo> sessions();
    // Fops that have arrived and not been replied to.
    std::size_t held() const { return held_; }
    // Of clients that have a session, or had one within `gone_max`.
    std::vector<UnheardFop> unheard(Duration gone_max) const;
    // Clients that have a session or may come back for what they asked.
    std::size_t clients() const { return clients_.size(); }

private:
    class Peer;
    class Incoming;

    static void on_time(core::Timer& timer);
    Incoming& take_incoming();
    void release(Incoming& incoming);
    void remove(Peer& peer);

    SessionHost& host_;
    IncomingUser& user_;
    const ServerOptions options_;
    Admission admission_;
    void* registration_ = nullptr;
    bool draining_ = false;
    std::size_t held_ = 0;
    std::map<Peer*, std::unique_ptr<Peer>> peers_;
    HandshakePlaces places_;
    ClientRecords clients_;
    std::vector<std::unique_ptr<Incoming>> incoming_;
    std::vector<Incoming*> free_incoming_;
};

}  // namespace fopd::fabric

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/counter.h"
#include "core/intrusive_list.h"
#include "core/reused_objects.h"
#include "core/timer_heap.h"
#include "fabric/rpc/client_records.h"
#include "fabric/rpc/handshake_places.h"
#include "fabric/rpc/incoming.h"
#include "fabric/session/session_host.h"

namespace fopd::fabric {

struct ServerOptions {
    std::uint16_t locality = 0;
    // Identifies this life of the node: differs after each start.
    std::uint64_t incarnation = 0;
    std::uint32_t sessions_max = 20'000;
    // A principal may open so many sessions at once, and afterwards one in each interval.
    std::uint32_t session_opens_max = 20'000;
    Duration session_open_interval{3ms};
    // Connections in the handshake. A failed one keeps its place for the longest time that a
    // handshake may take.
    std::uint32_t handshakes_max = 1024;
    // For how long the server remembers the requests of clients without a session, and for how many
    // clients, so that a client that returns gets its replies.
    Duration client_kept{5min};
    std::uint32_t clients_kept_max = 4096;
    // Memory for the replies that are kept for such clients.
    std::uint64_t reply_bytes_max = 64U << 20;
    // Memory for the requests of all sessions, from their arrival until they are answered.
    std::uint64_t request_bytes_max = 256U << 20;
    // Memory for the replies that wait until their session can send them.
    std::uint64_t unsent_bytes_max = 64U << 20;
};

// Counters of a server, readable from any thread.
struct ServerStatistics {
    // Requests that were answered "try again", because their principal has its whole share of a
    // kind of memory.
    core::Counter lacked_requests;  // The memory for requests.
    core::Counter lacked_waiting;   // The memory for fops that wait for their turn.
    core::Counter lacked_replies;   // The memory for replies that clients have not acknowledged.
    // Sessions that were ended because replies to their principal take too much memory.
    core::Counter ended;
};

using fop::Admission;

// A session as the administrator sees it.
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
    std::uint32_t fops_waiting = 0;  // How many of fops_held wait for their turn.
    std::uint32_t fop_credits = 0;
    std::uint32_t fop_loans = 0;  // Credits lent in addition, for fops that wait for their turn.
};

// A fop with a recorded reply that its client has not acknowledged.
struct UnheardFop {
    RequestOwner owner{};
    std::uint64_t request = 0;
};

// The server's side of RPC at one locality. It passes the requests in messages to an IncomingUser
// and sends the replies, all replies of a turn together. If a fop must not run twice and the store
// does not record its reply, the server keeps the reply in memory until the client has acknowledged
// it: a client whose session was lost and that sends the request again gets the same reply.
//
// Lives on the reactor of its host.
class Server final : core::Timer {
public:
    Server(SessionHost& host, IncomingUser& user, const ServerOptions& options);
    // REQUIRES: the host is closed and every fop has been replied to. Does not hold at the end of a
    // simulated world.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Registers the locality's buffer memory, which transfers use, with the hardware.
    Result<void> use_memory(std::span<std::byte> memory);
    void admit(Admission admission) { admission_ = std::move(admission); }
    void accept(std::unique_ptr<ConnectionRequest> request);
    // Refuses and counts a request to connect; `words` tell the peer why.
    void refuse(std::unique_ptr<ConnectionRequest> request, std::string_view words);
    void count_silent(std::uint32_t count) { host_.count_silent(count); }
    void count_stranger(Stranger::Kind kind) { host_.count_stranger(kind); }

    // From now on refuses new clients, and tells connected ones to send no more requests. Requests
    // that still arrive are passed on. The sessions of peers stay open, because the node needs them
    // to leave its epochs.
    void drain();

    // Ends the sessions whose keys or rights are no longer valid. Returns how many. Fops of clients
    // that cannot come back with their keys are cancelled.
    std::size_t end_outdated();
    std::vector<SessionInfo> sessions();
    // The number of fops that have arrived and have not been replied to.
    std::size_t held() const { return held_; }
    const ServerStatistics& statistics() const { return statistics_; }
    // How many fops there is memory for beside their content.
    std::size_t fops_made() const { return incoming_.all().size(); }
    // How many fops were looked at to find those of a session. It bounds the cost of messages
    // about fops, which no reply shows.
    std::uint64_t visited() const { return visited_; }
    // The fops of clients that have a session, or had one less than `gone_max` ago.
    std::vector<UnheardFop> unheard(Duration gone_max) const;
    // The number of clients that have a session or whose requests are remembered.
    std::size_t clients() const { return clients_.size(); }
    // The memory for replies that are kept for these clients.
    std::uint64_t reply_bytes() const { return clients_.reply_bytes(); }
    // The memory for requests that have not been answered.
    std::uint64_t request_bytes() const { return clients_.request_bytes(); }
    // The memory for replies that wait to be sent.
    std::uint64_t unsent_bytes() const { return clients_.unsent_bytes(); }

private:
    class Peer;
    class Incoming;
    void say_bye(Session& session) const;

    // The interval of sweeps, while there are clients or requests to forget.
    static constexpr Duration kSweepInterval = 10s;
    // The pause between the steps of a sweep.
    static constexpr Duration kSweepPause = 1ms;
    static void on_time(core::Timer& timer);
    Incoming& take_incoming();
    void release(Incoming& incoming);
    void remove(Peer& peer);
    // Frees a place for this new host if none is left. Looks at the hosts that have the most
    // places: their oldest failed handshake loses its place. If none of their handshakes has
    // failed, ends the oldest that is running. Returns whether a place is free.
    bool make_place_for(const std::string& host);

    SessionHost& host_;
    IncomingUser& user_;
    const ServerOptions options_;
    Admission admission_;
    void* registration_ = nullptr;
    bool draining_ = false;
    std::size_t held_ = 0;
    std::uint64_t visited_ = 0;
    std::map<Peer*, std::unique_ptr<Peer>> peers_;
    HandshakePlaces places_;
    core::IntrusiveList<Peer> in_handshake_;  // The oldest first.
    ClientRecords clients_;
    ServerStatistics statistics_;
    core::ReusedObjects<Incoming> incoming_;
};

}  // namespace fopd::fabric

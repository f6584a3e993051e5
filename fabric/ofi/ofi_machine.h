#pragma once

#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/fd_watch.h"
#include "core/intrusive_list.h"
#include "core/random.h"
#include "fabric/ofi/ofi_connection.h"
#include "fabric/ofi/ofi_provider.h"
#include "fabric/transport.h"

namespace fopd::fabric {

// Unmaps memory of core::map_zeros().
struct Unmap {
    std::size_t size_bytes = 0;
    void operator()(std::byte* memory) const;
};

// A domain of the provider with one completion queue, one event queue and one shared receive
// context. All work is done in poll(): first completions, then events of connections, then
// endpoints are closed.
class OfiMachine final : public TransferMachine, core::Poller {
public:
    OfiMachine(const Provider& provider, core::Reactor& reactor, MessageUser& messages);
    ~OfiMachine() override;

    Result<void> open(const MachineOptions& options);

    Result<void*> register_memory(std::span<std::byte> memory) override;
    Result<RemoteMemory> open_memory(std::span<std::byte> memory, Access access) override;
    void close_memory(const RemoteMemory& memory) override;
    std::unique_ptr<Connection> connect(const Address& peer, std::span<const std::byte> hello,
                                        ConnectionUser& user) override;
    std::unique_ptr<Connection> accept(std::unique_ptr<ConnectionRequest> request,
                                       std::span<const std::byte> answer,
                                       ConnectionUser& user) override;
    Task<void> stop() override;
    std::uint32_t in_flight() const override { return in_flight_; }

private:
    friend OfiConnection;

    // A receive buffer. The provider's context is its first member, as in TransferOp.
    struct Receive {
        fi_context2 context;
        std::byte* bytes;
    };
    // An event of the event queue and its connection's id: the connection may be destroyed before
    // the event is handled.
    struct Event {
        std::uint64_t connection;
        Error reason{.code = Errc::kClosed};
        std::string data;  // The answer, or the refusal text.
    };

    bool poll() override;
    void end_of_turn() override {}
    Duration sleep_max() override;
    // With tcp, transfers progress only while the machine polls. A message is often followed by
    // more.
    Look look() const override {
        if (has_many_connections()) return Look::kNever;
        const bool transfers = transfers_in_flight_ > 0 || !opened_.empty();
        if (transfers && provider_.is_tcp()) return Look::kAlways;
        return in_flight_ > 0 || busy_since_sleep_ ? Look::kIfItPays : Look::kNoNeed;
    }

    Result<void> open_receives(const MachineOptions& options);
    Result<void> check_cache();
    Result<OwnedFid<fid_mr>> open_region(std::span<std::byte> memory, std::uint64_t access,
                                         std::uint64_t key);
    Result<void> open_endpoint(OfiConnection& connection, fi_info& info);
    void post_receives();
    // With so many connections, polling an empty queue takes as long as sleeping and waking up,
    // because the tcp provider then checks each connection.
    bool has_many_connections() const { return provider_.is_tcp() && connections_.size() > 256; }
    bool waits_for_events() const { return connecting_ > 0 || !provider_.is_tcp(); }
    bool something_ends() const {
        return !ended_.empty() || !failed_.empty() || !connects_.empty() || !ends_.empty();
    }
    std::uint32_t read_completions();
    // `told_bytes`: the length that the provider reports.
    void take_message(const Receive& receive, std::size_t told_bytes);
    void warn_too_long();
    void complete(TransferOp& op, std::size_t told_bytes);
    std::uint32_t read_completion_error();
    Receive* receive_at(void* context);
    void fetch_events();
    void add_error_event();
    OfiConnection* find(std::uint64_t id);
    std::uint32_t tell_connected();
    std::uint32_t settle();
    void close_endpoint(OwnedFid<fid_ep> endpoint);
    void close_endpoints(std::size_t count_max);

    const Provider& provider_;
    core::Reactor& reactor_;
    MessageUser& messages_;

    OwnedFid<fid_domain> domain_;
    OwnedFid<fid_cq> completions_;
    OwnedFid<fid_eq> events_;
    std::vector<OwnedFid<fid_mr>> registrations_;
    std::unordered_map<std::uint64_t, OwnedFid<fid_mr>> opened_;  // By key.
    std::unique_ptr<std::byte[], Unmap> receive_memory_;
    std::size_t receive_bytes_ = 0;  // The size of a receive buffer.
    void* receive_descriptor_ = nullptr;
    std::vector<Receive> receives_;
    std::vector<Receive*> unposted_;
    OwnedFid<fid_ep> shared_receive_;
    std::optional<core::FdWatch> completion_watch_;
    // Watches the descriptor of the event queue. With tcp, only while connections are being made:
    // at other times the descriptor of the completion queue is ready for all events, and in some
    // versions of libfabric the descriptor of the event queue is ready for each message.
    std::optional<core::FdWatch> event_watch_;

    core::Random tails_;  // For OfiConnection::mark_tail().
    std::uint64_t last_id_ = 0;
    std::map<std::uint64_t, OfiConnection*> connections_;  // By an id that is never reused.
    std::unordered_map<const fid*, std::uint64_t> ids_;    // The ids of open endpoints.
    std::deque<Event> connects_;       // Events of new connections that are not handled yet.
    std::deque<Event> ends_;           // Events of ended connections that are not handled yet.
    std::vector<TransferOp*> failed_;  // To be completed as kClosed.
    std::deque<std::uint64_t> ended_;  // Ended connections to settle.
    // Endpoints to close, a few in each poll. The oldest is closed first, because libfabric
    // searches lists that begin with the oldest.
    std::map<std::uint64_t, OwnedFid<fid_ep>> closing_;
    // Connections with operations that were not started yet.
    core::IntrusiveList<OfiConnection> parked_;
    std::uint32_t connecting_ = 0;
    std::uint32_t in_flight_ = 0;
    std::uint32_t posted_ = 0;  // How many of in_flight_ the provider has.
    std::uint32_t posted_max_ = 0;
    std::uint32_t transfers_in_flight_ = 0;  // How many of in_flight_ are reads and writes.
    std::uint32_t polls_ = 0;

    bool dry_ = true;       // The last poll found the completion queue empty.
    bool was_dry_ = false;  // The poll before found it empty, and did not skip a look.
    bool slept_ = false;    // The reactor has slept since the last poll.
    bool busy_since_sleep_ = false;
    Instant sleep_end_;  // When the longest allowed sleep ends.
};

}  // namespace fopd::fabric

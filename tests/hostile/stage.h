#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/entropy.h"
#include "core/gate.h"
#include "daemon/access.h"
#include "daemon/listener.h"
#include "daemon/locality.h"
#include "daemon/node_epochs.h"
#include "eh/settings.h"
#include "fop/token.h"
#include "sim/simulated_epoch_stores.h"
#include "tests/fabric/rpc_stage.h"
#include "tests/hostile/raw_peer.h"

namespace fopd::fabric::testing {

// A client that keeps to the rules, and calls all the time while others do not.
class Bystander {
public:
    Bystander(Transport& transport, Loop& loop, const core::Clock& clock, const Address& server,
              Duration pace, std::uint64_t seed = 4);
    ~Bystander();
    Bystander(const Bystander&) = delete;
    Bystander& operator=(const Bystander&) = delete;

    // Until `count` more calls were answered. False when they are not.
    bool go_on(std::size_t count);
    // One bulk_echo, which must not take long.
    bool move_bulk();
    // Calls that were not answered well.
    std::size_t failures();
    std::uint64_t reconnects();
    std::uint64_t session_id();
    // Of the calls since the last time this was asked, sorted.
    std::vector<Duration> take_latencies();

private:
    Task<void> work();
    Task<void> bulk(bool* moved);
    Task<void> stop();

    Loop& loop_;
    const core::Clock& clock_;
    const Duration pace_;
    core::Gate gate_;
    std::unique_ptr<ClientSide> side_;
    bool stopping_ = false;
    std::size_t calls_ = 0;
    std::size_t failures_ = 0;
    std::vector<Duration> latencies_;
};

// The times are those in the simulated world; in the real one, sanitizers make them longer.
struct HostileOptions {
    Duration lease{3s};
    Duration handshake_timeout{1s};
    Duration pace{10ms};
    std::uint32_t inline_max = 12U << 10;
    ServerOptions server{.incarnation = 42};
    std::uint32_t send_buffer_count = 512;
    bool open_to_all = false;
    // With kind peers the daemon is the member HostileStage::kMemberName.
    eh::EpochSettings epochs{};
};

// A daemon's locality and listener, a bystander who must not notice anything, and a process for
// those who misbehave. Each has a reactor of its own, in the world of the transport.
class HostileStage {
public:
    using Counter = core::Counter HostStatistics::*;

    explicit HostileStage(const Kind& kind, const HostileOptions& options = {});
    // Whatever happened: the bystander noticed nothing, and all of it can be stopped.
    ~HostileStage();
    HostileStage(const HostileStage&) = delete;
    HostileStage& operator=(const HostileStage&) = delete;

    // The keys that the daemon knows: one of `good`, two of `turned`, the second of which is old.
    static fop::Key good_key() { return key_of(1); }
    static fop::Key turned_key() { return key_of(2); }
    static fop::Key turned_old_key() { return key_of(3); }
    // Of `proxy`, who may speak for others.
    static fop::Key proxy_key() { return key_of(5); }
    static fop::Key peers_key() { return key_of(6); }
    // Of `poor`, who has no rights.
    static fop::Key poor_key() { return key_of(4); }
    static fop::Key unknown_key() { return key_of(9); }
    static constexpr std::string_view kMemberName = "server";
    static fop::Issuer issuer() { return fop::Issuer(key_of(77)); }

    // A peer that has said nothing yet.
    RawPeer& peer(const fop::Key& key = good_key()) { return peer(credentials(key)); }
    RawPeer& peer(fop::Credentials who);
    RawPeer& peer(RawPeer::Options options);
    // One that has connected, and one whose session is open.
    RawPeer& connected_peer(const fop::Key& key = good_key());
    RawPeer& open_peer(const fop::Key& key = good_key());

    // What a reload changes.
    struct Reload {
        bool with_old_key = true;
        bool with_delegation = true;
        std::vector<fop::Key> peers{peers_key()};
        bool open_to_all = false;
    };
    void reload(const Reload& files);

    std::uint64_t count(Counter counter) const { return (statistics().*counter).get(); }
    bool wait_count(Counter counter, std::uint64_t at_least);
    std::size_t events(std::string_view name);
    // Waits until the daemon has turned a few times: what was sent has arrived by then.
    void settle() { REQUIRE(bystander().go_on(5)); }
    std::vector<SessionInfo> sessions();
    std::size_t fops_held();
    eh::peers::EpochStatus epochs();
    // One of the metrics of epochs.
    double epoch_figure(std::string_view name);

    Bystander& bystander() { return *bystander_; }
    Process& hostile() { return *hostile_; }
    Loop& hostile_loop() { return *hostile_loop_; }
    Loop& server_loop() { return *server_loop_; }
    Loop& bystander_loop() { return *bystander_loop_; }
    const Address& address() const { return address_; }
    ReplayedWorld* world() { return world_ ? &*world_ : nullptr; }
    Transport& transport() { return *transport_; }
    const core::Clock& clock() const { return *clock_; }

private:
    const HostStatistics& statistics() const { return *locality_->host_statistics(); }
    std::unique_ptr<Loop> make_loop();
    void make_epochs(const eh::EpochSettings& settings);
    Task<void> close_locality();
    static daemon::LiveSettings live_settings(const Reload& files);

    std::optional<ReplayedWorld> world_;
    std::unique_ptr<Transport> transport_;
    core::PosixClock posix_clock_;
    const core::Clock* clock_ = &posix_clock_;
    core::SeededEntropy entropy_{4711};
    NotedEvents events_;
    std::unique_ptr<Loop> server_loop_;
    std::unique_ptr<Loop> hostile_loop_;
    std::unique_ptr<Loop> bystander_loop_;
    sim::EpochFiles epoch_files_;
    std::optional<sim::SimulatedEpochStores> epoch_stores_;
    std::optional<daemon::NodeEpochs> epochs_;
    std::unique_ptr<daemon::Locality> locality_;
    std::unique_ptr<daemon::Listener> listener_;
    Address address_;
    std::optional<Process> hostile_;
    std::deque<RawPeer> peers_;
    std::uint64_t next_seed_ = 100;
    std::unique_ptr<Bystander> bystander_;
};

// Each test runs over two transports of the simulated world, and over both of real sockets.
inline Kind any_hostile_kind() {
    return GENERATE(kind_named("mem, virtual time"), kind_named("tcp, virtual time"),
                    kind_named("ofi, tcp"), kind_named("tcp, poll"));
}
// Transports that tell which connection has delivered a message.
inline Kind any_hostile_kind_that_tells() {
    return GENERATE(kind_named("mem, virtual time"), kind_named("tcp, virtual time"),
                    kind_named("tcp, poll"));
}

inline fop::Request echo_request(std::uint64_t id, std::string_view text = "hello") {
    return {.id = id, .type = 2, .payload = bytes_of(text), .body = fop::Echo{}};
}
inline fop::Request ping_request(std::uint64_t id) {
    return {.id = id, .type = 1, .body = fop::Ping{}};
}

}  // namespace fopd::fabric::testing

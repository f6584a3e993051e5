#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/virtual_world.h"
#include "eh/fold.h"
#include "lrs/policies.h"
#include "lrs/scheduler.h"
#include "tests/lrs/stage_request.h"
#include "tests/replay.h"

namespace fopd::lrs::testing {

// The epochs of a cluster in the plainest way: a hub that knows who is ready. It combines what they
// contribute in a drawn order, lets each node begin after a drawn delay, evicts who has not begun
// or is not ready in time, and takes back who asks again.
class EpochHub {
public:
    struct Options {
        Duration timeout = 5s;
        Duration ragged_max{};  // The most by which a node begins an epoch after the first one.
    };
    class Seat;

    EpochHub(core::VirtualWorld& world, const Options& options);
    ~EpochHub();
    EpochHub(const EpochHub&) = delete;
    EpochHub& operator=(const EpochHub&) = delete;

    Seat& add_seat(core::Reactor& reactor);
    // Nothing passes between the hub and that node until it is healed.
    void cut_off(Seat& seat);
    void heal(Seat& seat);

    std::uint64_t begun_count() const { return begun_count_; }
    // When the newest epochs began at the first of the nodes.
    std::vector<Instant> begun_at;

private:
    friend Seat;

    void look();
    void decide();
    void on_timeout();
    void on_left_out();

    core::VirtualWorld& world_;
    const Options options_;
    const eh::EpochRules rules_;
    const std::unique_ptr<core::Reactor> reactor_;
    core::Random random_;
    std::vector<std::unique_ptr<Seat>> seats_;
    class Timeout;
    const std::unique_ptr<Timeout> timeout_;
    const std::unique_ptr<Timeout> left_out_;
    eh::EpochNumber epoch_ = eh::kFirstEpoch;
    std::uint64_t begun_count_ = 0;
};

// One service of a request.
struct ServedOnce {
    Instant at;
    std::uint64_t amount;
    std::size_t server;
};

// Servers with rules, whose schedulers have tbf, and clients that send them requests.
class ClusterStage : fopd::testing::Replay {
public:
    struct Options {
        std::uint64_t seed = 1;
        std::size_t servers = 2;
        std::uint32_t localities = 1;
        std::vector<std::string> rules{};
        EpochHub::Options epochs{};
        std::optional<std::uint32_t> cut_off{};
        bool counts_bytes = false;  // The amounts of services are bytes.
        bool has_odd_key = false;   // The last server has another key.
    };
    explicit ClusterStage(const Options& options);
    ~ClusterStage();
    ClusterStage(const ClusterStage&) = delete;
    ClusterStage& operator=(const ClusterStage&) = delete;

    // From now on this many requests of the kind always wait at each locality of the server.
    void keep_waiting(std::size_t server, std::string_view request, std::size_t count);
    // From now on so many arrive in a second at the server, at drawn times.
    void send(std::size_t server, std::string_view request, double per_second);
    void run_for(Duration span);
    Instant now() const { return world.now(); }

    void cut_off(std::size_t server);
    void heal(std::size_t server);
    // The server's process is killed, and another one begins.
    void restart(std::size_t server);
    // As if its process was stopped for so long.
    void stand_still(std::size_t server, Duration span);
    void set_rules(std::size_t server, const std::vector<std::string>& rules);
    void set_policy(std::size_t server, std::string_view policy);
    std::vector<ClassFigures> figures(std::size_t server);

    // Of the kind of request, in all servers.
    std::uint64_t served_between(std::string_view request, Instant begin, Instant end) const;
    // The most by which a span of any length has more than rate * t.
    long double most_at_once(std::string_view request, double per_second) const;
    std::map<std::string, std::vector<ServedOnce>, std::less<>> served;

    core::VirtualWorld world;
    std::unique_ptr<EpochHub> hub;

private:
    class Client;
    class Server;
    friend Client;

    const Options options_;
    std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace fopd::lrs::testing

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/time.h"

namespace fopd::sim {

// A fault: its kind, what it concerns, and its time. A plan is data: the same plan with the same
// seed gives the same run.
struct Fault {
    enum class Kind : std::uint8_t {
        kCrash,          // kill -9: memory is lost; restarted after `span`.
        kStallLocality,  // The thread of one locality does not run for `span`.
        kStallNode,      // SIGSTOP for `span`.
        kReload,         // SIGHUP.
        kBadReload,      // SIGHUP with a broken configuration; it is repaired after `span`.
        kDrain,          // fopctl drain.
        kRestart,        // SIGTERM, then a restart when it has ended.
        // Faults between the node and a client, all clients, or another node.
        kDelay,           // Messages take up to half a second for `span`.
        kStallLink,       // Nothing passes for `span`, one way.
        kLose,            // Connections end, and both sides are notified.
        kLoseAtNode,      // Only the node is notified; the client notices when it next sends.
        kLoseAtClient,    // Only the client is notified.
        kPartition,       // Nothing passes for `span`.
        kBlockToNode,     // Nothing from client to node passes for `span`.
        kBlockToClient,   // Nothing from node to client passes for `span`.
        kRefuseConnects,  // The node refuses connections, as if it did not listen, for `span`.
        // Faults of clients.
        kCrashClient,  // kill -9; started again after `span`.
        // Faults of epochs, which add_epoch_faults() draws.
        kCrashAt,    // kill -9 at the next `moment` of the node; restarted after `span`.
        kClockJump,  // The node's wall clock jumps by `span`, which may be negative.
    };
    // What a node does for its epochs when kill -9 hits it.
    enum class Moment : std::uint8_t {
        kIncarnation,  // It makes an incarnation durable.
        kJoin,         // It asks to join.
        kPromise,      // It asks for promises.
        kPromiseAck,   // It promises.
        kSwap,         // It writes a new view to the store.
        kViewNews,     // It sends the new view, or the difference to the last one.
        kStart,        // It tells others that an epoch begins.
    };
    static constexpr std::uint32_t kMoments = 7;
    static constexpr std::uint32_t kEveryClient = UINT32_MAX;
    static constexpr std::uint32_t kAnyNode = UINT32_MAX;

    Kind kind;
    Instant at;
    std::uint32_t node = 0;
    std::uint32_t locality = 0;
    Duration span{0};
    std::uint32_t client = kEveryClient;
    // For a fault of the network: the node at the other end of the link; none: clients are.
    std::optional<std::uint32_t> peer{};
    // For kCrashAt: the step at which the node crashes. With kAnyNode the first node that comes to
    // this step crashes.
    Moment moment = Moment::kIncarnation;
    bool is_done = false;  // Whether the node crashes after the step instead of before.
};
const char* to_string(Fault::Kind kind);

struct FaultPlanOptions {
    std::uint32_t nodes = 1;
    std::uint32_t localities = 1;
    std::uint32_t clients = 0;  // 0: no faults of clients and of the network.
    Duration length = 600s;
    std::uint32_t fault_count = 20;
    bool peers = false;  // Nodes connect to each other: half of the network's faults are there.
};

// A plan drawn from a seed, ordered by time.
std::vector<Fault> draw_fault_plan(core::Random random, const FaultPlanOptions& options);
// Adds `fault_count` kills at moments of epochs and jumps of clocks to a plan.
void add_epoch_faults(std::vector<Fault>& plan, core::Random random,
                      const FaultPlanOptions& options);

bool is_of_network(Fault::Kind kind);

// "at 12.500000 s node 3 locality 1 client 5: stall_link for 4.000000 s"; of a link between nodes,
// "peer" and the other node instead of the client.
std::string describe(const Fault& fault);

}  // namespace fopd::sim

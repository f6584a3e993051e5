#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/virtual_world.h"
#include "fabric/rpc/client.h"
#include "sim/call_book.h"
#include "sim/simulated_network.h"

namespace fopd::sim {

struct SimulatedClientOptions {
    std::string name = "client";  // Its host name in the network.
    std::uint32_t index = 0;      // The number of the client in its cluster.
    std::uint32_t nodes = 1;      // How many nodes it calls: node-0, node-1, ..., all at port 1.
    SimulatedNetwork* network = nullptr;
    CallBook* book = nullptr;
    // Returns the number of the node's present life if it takes new work, else 0.
    std::function<std::uint64_t(std::uint32_t node)> life_of;
    // The number of its connections. Each goes to one node, and to another node after some calls.
    std::uint32_t lines = 2;
    // The longest pause between two rounds of calls on a line.
    Duration pause_max = 20s;
    // The client makes only the calls that a test asks for.
    bool quiet = false;
};

// A process that uses the client library: it makes calls of every kind, at times and to nodes drawn
// from the seed, and checks their results. It can be killed and started again.
class SimulatedClient {
public:
    SimulatedClient(core::VirtualWorld& world, SimulatedClientOptions options);
    ~SimulatedClient();
    SimulatedClient(const SimulatedClient&) = delete;
    SimulatedClient& operator=(const SimulatedClient&) = delete;

    const std::string& name() const { return options_.name; }
    bool running() const { return process_ != nullptr; }
    // Starts the process. REQUIRES: not running.
    void start();
    // kill -9.
    void crash();
    // Asks the process to end: its calls end, then its connections; bury() then finds it ended.
    void leave();
    // Called between two steps of the world: destroys a process that has ended.
    void bury();

    // Tells the book which sessions belong to this client. Called at each new instant.
    void look();
    // The longest time for which one of its connections has been down.
    Duration longest_disconnection() const;
    // Connects to each node and makes calls there, which must all succeed within `patience`.
    void visit_all(Duration patience);
    bool visiting() const;

    struct Wish {
        const fop::FopType* type = nullptr;
        std::size_t bytes = 0;
        Duration timeout{10s};
        Duration cancel_after{0};  // Zero: never.
        bool must_be_done = false;
    };
    // One call to the node, on a connection of its own.
    void call(std::uint32_t node, Wish wish);

private:
    struct Line;
    struct Process;

    Task<void> live(Process* process);
    Task<void> talk(Process* process);
    Task<void> make_rounds(Process* process, Line* line);
    Task<void> visit(Process* process, std::uint32_t node, Duration patience);
    Task<void> call_once(Process* process, std::uint32_t node, Wish wish);
    Task<void> make_call(Process* process, Line* line, Wish wish);
    Task<void> hang_up(Process* process, Line* line);
    void look_at(Line& line);
    Line& add_line(Process& process, std::uint32_t node);
    Wish draw_wish(Process& process) const;
    void judge_memory(const CallBook::Entry& entry, bool kept);
    struct Outcome;
    // Returns the word for the outcome. Reports a broken promise to the book if the call must not
    // end in this way.
    std::string_view judge(const Outcome& outcome);

    core::VirtualWorld& world_;
    const SimulatedClientOptions options_;
    CallBook& book_;
    std::uint64_t line_count_ = 0;
    std::unique_ptr<Process> process_;
};

}  // namespace fopd::sim

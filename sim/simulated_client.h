#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/virtual_world.h"
#include "fabric/mem_transport.h"
#include "fabric/rpc/client.h"
#include "sim/call_book.h"

namespace fopd::sim {

struct SimulatedClientOptions {
    std::string name = "client";  // Its host in the network.
    std::uint32_t index = 0;      // Among its kind.
    std::uint32_t nodes = 1;      // It calls node-0 and so on, each listening at port 1.
    fabric::MemTransport* network = nullptr;
    CallBook* book = nullptr;
    // Returns the number of the node's present life if it takes new work, else 0.
    std::function<std::uint64_t(std::uint32_t node)> life_of;
    // Nodes it talks to at a time; for each it makes calls, then moves on to another.
    std::uint32_t lines = 2;
    // Between two rounds of calls of a line, at most.
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
    // Starts the process. Requires: not running.
    void start();
    // kill -9.
    void crash();
    // Ends in its own time, and bury() finds it ended: its calls end, then its connections.
    void leave();
    // Between two steps of the world: takes a process that has ended out of memory.
    void bury();

    // Tells the book which sessions belong to this client. Called at each new instant.
    void look();
    // How long the one of its connections that has been down the longest has been down.
    Duration longest_disconnection() const;
    // Connects to each node and makes calls there, all of which must be done within `patience`.
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
    // A word for the outcome. Breaks a promise if the call must not end in this way.
    struct Outcome;
    std::string_view judge(const Outcome& outcome);

    core::VirtualWorld& world_;
    const SimulatedClientOptions options_;
    CallBook& book_;
    std::uint64_t line_count_ = 0;
    std::unique_ptr<Process> process_;
};

}  // namespace fopd::sim

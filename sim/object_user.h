#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/virtual_world.h"
#include "sim/object_book.h"
#include "sim/simulated_network.h"

namespace fopd::sim {

struct ObjectUserOptions {
    std::string name = "user";    // Its host name in the network.
    std::string server = "node";  // The host that listens at port 1.
    SimulatedNetwork* network = nullptr;
    ObjectBook* book = nullptr;
    // Options of the client library.
    std::uint64_t fop_bytes = 64U << 10;
    std::uint64_t held_bytes_max = 1U << 20;
    // Ranges of the random choices.
    std::uint32_t names = 5;
    std::uint64_t object_bytes = 48U << 10;
    bool tears = false;      // Often truncates objects or punches holes in them.
    bool impatient = false;  // Some calls have a deadline that they may miss.
    // Objects are rarely removed, and all users write to them, often buffered.
    bool shares = false;
    std::string pool = {};  // Of all objects; empty: the node's default.
    // New objects are in one of so many collections, by their names, or in none.
    std::uint32_t collections = 0;
    // The pool is on tape: objects are also released, staged and synced. None has a far end.
    bool tapes = false;
};

// A process that uses libfopd's objects: it makes random calls, drawn from a seed, several at a
// time, and records them in the book. It can be killed and started again.
class ObjectUser {
public:
    ObjectUser(core::VirtualWorld& world, ObjectUserOptions options);
    ~ObjectUser();
    ObjectUser(const ObjectUser&) = delete;
    ObjectUser& operator=(const ObjectUser&) = delete;

    bool running() const { return process_ != nullptr; }
    // Starts the process. REQUIRES: not running.
    void start();
    // kill -9.
    void crash();
    // SIGSTOP until the given time. REQUIRES: running.
    void stop(Instant until);
    // Asks the process to end; its work in progress ends first. REQUIRES: idle.
    void leave();
    // Called between two steps of the world: destroys a process that has ended.
    void bury();
    const std::string& name() const { return options_.name; }
    std::uint64_t done() const { return done_; }

    // -- tasks that run in the background; REQUIRES for all: running --

    // Makes that many calls one after the other, in parallel to the calls it makes already.
    void work(std::uint32_t count);
    void sync();
    // Reads the complete state, and gives it to the book as the state at rest; remove_all() then
    // removes all objects.
    void look_at_all();
    void remove_all();
    // Reads all objects, as far as possible.
    void read_all();
    // Whether all tasks are done; true after the process was killed.
    bool idle() const;

    // Makes one call chosen by a test; its object may be drawn later.
    void make(ObjectWish wish);
    // All objects come to be on tape, however long that takes.
    void sync_tape();

private:
    struct Process;
    using Ended = ObjectBook::Ended;
    struct CallWait : client::ObjectClient::Wait {
        Instant begun{};  // When the call began.
    };

    Task<void> live(Process* process);
    Task<void> work_through(Process* process, std::uint32_t count);
    Task<void> sync_once(Process* process);
    Task<void> ask_tape(Process* process, ObjectWish wish, CallWait wait);
    Task<void> look_everywhere(Process* process);
    Task<void> look_at_gone(Process* process, std::vector<fop::Fid> there);
    Task<void> remove_everything(Process* process);
    Task<void> read_everything(Process* process);
    Task<void> carry_out(Process* process, ObjectWish wish);
    Task<void> look(Process* process, ObjectWish wish, CallWait wait);
    Task<void> list(Process* process, ObjectWish wish, CallWait wait);
    Task<void> read(Process* process, ObjectWish wish, CallWait wait);
    Task<void> write(Process* process, ObjectWish wish, CallWait wait);
    std::string collection_of(const std::string& name) const;
    Task<void> change(Process* process, ObjectWish wish, CallWait wait);
    ObjectWish draw_wish(Process& process) const;
    ObjectWish draw_shared_wish(Process& process) const;
    ObjectWish draw_tape_wish(Process& process) const;
    fop::Range draw_range(core::Random& random) const;
    std::vector<fop::Range> parts_of(const fop::Range& range) const;
    // The end of a failed call; also tells the book about lost writes.
    Ended failed(const Process& process, const client::Problem& problem, CallWait wait);

    core::VirtualWorld& world_;
    const ObjectUserOptions options_;
    ObjectBook& book_;
    std::unique_ptr<Process> process_;
    std::uint64_t done_ = 0;
};

}  // namespace fopd::sim

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/virtual_world.h"
#include "fabric/mem_transport.h"
#include "sim/object_book.h"

namespace fopd::sim {

struct ObjectUserOptions {
    std::string name = "user";  // Its host in the network.
    std::string server = "mem://node:1";
    fabric::MemTransport* network = nullptr;
    ObjectBook* book = nullptr;
    // Of the library.
    std::uint64_t fop_bytes = 64U << 10;
    std::uint64_t held_bytes_max = 1U << 20;
    // What it draws from.
    std::uint32_t names = 5;
    std::uint64_t object_bytes = 48U << 10;
    bool tears = false;      // Often truncates objects or punches holes in them.
    bool impatient = false;  // Some calls have a deadline that they may miss.
    // Objects are rarely removed, and all users write to them, often buffered.
    bool shares = false;
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
    // Starts the process. Requires: not running.
    void start();
    // kill -9.
    void crash();
    // SIGSTOP, until then. Requires: running.
    void stop(Instant until);
    // Ends in its own time; what it had under way has ended then. Requires: idle.
    void leave();
    // Between two steps of the world: takes a process that has ended out of memory.
    void bury();
    const std::string& name() const { return options_.name; }
    std::uint64_t done() const { return done_; }

    // -- what it is to do, in its own time. Requires: running --

    // Makes that many calls one after the other, in parallel to the calls it makes already.
    void work(std::uint32_t count);
    void sync();
    // Looks at all there is, tells the book that it is at rest, and removes it if told so.
    void look_at_all();
    void remove_all();
    // Reads all there is, as far as it can be read.
    void read_all();
    // Nothing of that is left to do; so it is with one that was killed.
    bool idle() const;

    // One wish of a test's own; what it is about may be drawn later than the wish.
    void make(ObjectWish wish);

private:
    struct Process;
    using Ended = ObjectBook::Ended;

    Task<void> live(Process* process);
    Task<void> work_through(Process* process, std::uint32_t count);
    Task<void> sync_once(Process* process);
    Task<void> look_everywhere(Process* process);
    Task<void> look_at_gone(Process* process, std::vector<fop::Fid> there);
    Task<void> remove_everything(Process* process);
    Task<void> read_everything(Process* process);
    Task<void> carry_out(Process* process, ObjectWish wish);
    Task<void> look(Process* process, ObjectWish wish, client::ObjectClient::Wait wait);
    Task<void> list(Process* process, ObjectWish wish, client::ObjectClient::Wait wait);
    Task<void> read(Process* process, ObjectWish wish, client::ObjectClient::Wait wait);
    Task<void> write(Process* process, ObjectWish wish, client::ObjectClient::Wait wait);
    Task<void> change(Process* process, ObjectWish wish, client::ObjectClient::Wait wait);
    ObjectWish draw_wish(Process& process) const;
    ObjectWish draw_shared_wish(Process& process) const;
    fop::Range draw_range(core::Random& random) const;
    std::vector<fop::Range> pieces_of(const fop::Range& range) const;
    // How a call ends; the book knows then what it says is lost.
    Ended failed(const Process& process, const client::Problem& problem,
                 client::ObjectClient::Wait wait);

    core::VirtualWorld& world_;
    const ObjectUserOptions options_;
    ObjectBook& book_;
    std::unique_ptr<Process> process_;
    std::uint64_t done_ = 0;
};

}  // namespace fopd::sim

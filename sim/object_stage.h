#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/virtual_world.h"
#include "fabric/mem_transport.h"
#include "sim/object_book.h"
#include "sim/object_user.h"
#include "sim/simulated_node.h"

namespace fopd::sim {

struct ObjectStageOptions {
    std::uint32_t localities = 2;
    std::uint32_t disks = 2;
    std::uint64_t disk_bytes = 32UL << 20;
    std::uint32_t users = 2;
    Duration upload_timeout = 1min;
    std::uint64_t overlay_bytes = 1UL << 20;
    store::SweepOptions sweep = {};
    ObjectUserOptions user = {};  // Of each; what belongs to the stage is set by it.
    // Whether the disks are checked, over and over, while the users work.
    bool checks = false;
    // Whether disks come and go, one at a time, while the users work.
    bool moves = false;
};

// What befalls a node with objects and its clients while they are at work.
struct ObjectFault {
    enum class Kind : std::uint8_t {
        kCrash,        // kill -9 of the node.
        kPowerCut,     // At a step of its disks.
        kRestart,      // SIGTERM.
        kCrashUser,    // kill -9 of a client.
        kStopUser,     // SIGSTOP of a client for `span`.
        kLose,         // Connections end.
        kLoseAtNode,   // The node alone knows.
        kLoseAtUser,   // The client alone knows.
        kPartition,    // Nothing passes for `span`.
        kStallToNode,  // Nothing passes one way for `span`.
        kStallToUser,
        kStallLocality,  // One does not run for `span`.
        kDisks,          // Of all of them, until they are opened again.
    };
    Kind kind = Kind::kCrash;
    std::uint64_t after = 0;  // So many things were done in this round.
    std::uint32_t steps = 0;  // And so many steps of the world, or of the disks, were taken.
    Duration span{0};         // Until it is over, or who was killed is started again.
    std::uint32_t user = 0;
    std::uint32_t locality = 0;
    // What is missing when the node starts again.
    bool lose_indexes = false;
    bool lose_names = false;
    // This one, until it starts once more.
    std::optional<std::uint32_t> lose_disk = {};
    // This one, for good; a new one is in its place.
    std::optional<std::uint32_t> replace_disk = {};
    // At this step of its disks the power goes again while it starts; 0: it does not.
    std::uint32_t cut_start_at = 0;
    devices::DiskFaults disks = {};
};
const char* to_string(ObjectFault::Kind kind);

// A node with disks and clients that work on its objects, in a world of their own, and the faults
// they meet. The first broken promise is kept as a sentence.
class ObjectStage {
public:
    ObjectStage(std::uint64_t seed, ObjectStageOptions options);
    ~ObjectStage();
    ObjectStage(const ObjectStage&) = delete;
    ObjectStage& operator=(const ObjectStage&) = delete;

    core::VirtualWorld& world() { return world_; }
    SimulatedNode& node() { return node_; }
    ObjectBook& book() { return book_; }
    std::uint32_t user_count() const { return static_cast<std::uint32_t>(users_.size()); }
    ObjectUser& user(std::uint32_t index) { return *users_[index]; }
    fabric::MemNetwork& network() { return transport_.network(); }

    // All of these return whether every promise was kept.
    bool start();
    // Runs what the users were told to do to its end, under these faults.
    bool play(std::vector<ObjectFault> faults = {});
    // Ends the node's life in one way or another, and begins the next one.
    bool restart(ObjectFault::Kind how, bool lose_indexes = false, bool lose_names = false);
    // Who is left writes again what was lost; then all there is is compared with the book.
    bool settle();
    // A disk does not come back from a restart, and is written off. Requires: all was settled.
    bool write_off(std::uint32_t disk);
    // Checks what its disks say of themselves; nobody is at work.
    bool check();
    // Checks so far that came to their end.
    std::uint64_t check_count() const { return check_count_; }
    // Disks that were let go come back, and none goes any more.
    bool bring_back();
    void resume_moves() { moves_on_ = true; }
    // So far: disks that came, that went, and that did not because something was on them.
    struct Moves {
        std::uint64_t came = 0;
        std::uint64_t went = 0;
        std::uint64_t stayed = 0;
    };
    const Moves& moves() const { return moves_; }
    // Reads what there is, where disks let it.
    bool read_all();
    // All objects go; in the end no block is in use.
    bool empty();
    // The users leave, and the node stops.
    bool end();

    const std::string& broken_promise() const { return book_.broken_promise(); }
    // The most that there ever was, of one locality or disk.
    struct Most {
        std::uint64_t foms = 0;
        std::uint64_t waiting = 0;
        std::uint64_t changed_bytes = 0;
    };
    const Most& most() const { return most_; }
    // Faults that came before all was done.
    std::uint64_t faults_begun() const { return faults_begun_; }

private:
    struct Due {
        Instant at;
        ObjectFault fault;
    };

    bool kept() const { return book_.broken_promise().empty(); }
    std::uint64_t done() const;
    bool all_idle() const;
    void step(Instant limit);
    void carry_out(const ObjectFault& fault);
    void end_fault(const ObjectFault& fault);
    void end_node(const ObjectFault& fault);
    void begin_node(const ObjectFault& fault);
    bool run_until_ready();
    std::uint64_t blocks_in_use();
    void poison_free_space();
    void look_at_bounds();
    void must_be_within(const char* what, std::uint64_t count, std::uint64_t max);
    bool look_at_checks();
    void begin_checks();
    void begin_move();
    void begin_move_of(const std::string& disk);
    void end_move(const daemon::Node::DeviceResult& moved);
    bool is_open(const std::string& disk);

    core::VirtualWorld world_;
    const std::uint64_t overlay_bytes_;
    fabric::MemTransport transport_;
    ObjectBook book_;
    SimulatedNode node_;
    std::vector<std::unique_ptr<ObjectUser>> users_;
    std::vector<Due> due_;
    std::uint64_t blocks_in_use_at_start_ = 0;
    ObjectFault cut_fault_;
    bool cut_ = false;
    std::uint64_t steps_ = 0;
    Most most_;
    std::uint64_t faults_begun_ = 0;
    bool restarting_ = false;
    ObjectFault restart_fault_;
    const std::uint32_t disk_count_;
    std::optional<std::string> lost_disk_;
    bool moves_on_;
    bool moving_ = false;
    std::uint64_t moving_life_ = 0;
    Instant move_due_{};
    Moves moves_;
    const bool checks_;
    std::uint64_t check_count_ = 0;
    Instant checks_due_ = kNever;  // None is under way until then.
};

}  // namespace fopd::sim

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/virtual_world.h"
#include "library/library.h"
#include "sim/object_book.h"
#include "sim/object_user.h"
#include "sim/simulated_network.h"
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
    ObjectUserOptions user = {};  // The options of each user; the stage sets its own fields.
    // Whether the disks are checked repeatedly while the users work.
    bool checks = false;
    // Whether disks are removed and added, one at a time, while the users work.
    bool moves = false;
    Wire wire = Wire::kMessages;
    // With a tape library, the users' objects are in its pool.
    SimulatedLibraryOptions library = {};
    std::optional<library::TapePoolOptions> tape_pool = {};
    std::string tape_io = {};  // As in SimulatedNodeOptions.
};

// A fault of a node with objects, or of its clients, while they are working.
struct ObjectFault {
    enum class Kind : std::uint8_t {
        kCrash,        // kill -9 of the node.
        kPowerCut,     // At a given step of its disks.
        kRestart,      // SIGTERM.
        kCrashUser,    // kill -9 of a client.
        kStopUser,     // SIGSTOP of a client for `span`.
        kLose,         // Connections end.
        kLoseAtNode,   // Only the node is notified.
        kLoseAtUser,   // Only the client is notified.
        kPartition,    // Nothing passes for `span`.
        kStallToNode,  // Nothing passes one way for `span`.
        kStallToUser,
        kStallLocality,  // One locality does not run for `span`.
        kDisks,          // Faults of all disks, until they are opened again.
        // The next ones last until the tapes are repaired.
        kTapes,          // Faults of drives and robot.
        kDriveDies,      // Drive `tape`.
        kSwapLabels,     // Two cartridges exchange the barcodes on their outsides.
        kSwapElements,   // Two cartridges are in each other's element.
        kTakeCartridge,  // A cartridge is not in the library.
        kFormat,         // No fault: an administrator formats a cartridge without files.
        // No fault: an administrator scrubs or repacks a cartridge, ends that, or formats it
        // afterwards.
        kRepack,
        // The next ones last for ever.
        kDamage,     // A block of a tape file cannot be read.
        kOlderTape,  // A cartridge returns to its state before its last files were written.
    };
    Kind kind = Kind::kCrash;
    std::uint64_t after = 0;  // The number of operations of this round before the fault.
    std::uint32_t steps = 0;  // The number of further steps of the world, or of the disks.
    Duration span{0};         // Until its end, or until the restart of the killed process.
    std::uint32_t user = 0;
    std::uint32_t locality = 0;
    // Whether indexes and names are lost when the node starts again.
    bool lose_indexes = false;
    bool lose_names = false;
    // This disk, until the start after that.
    std::optional<std::uint32_t> lose_disk = {};
    // This disk, permanently; a new one replaces it.
    std::optional<std::uint32_t> replace_disk = {};
    // A second power cut at this step of its disks during the start; 0: none.
    std::uint32_t cut_start_at = 0;
    devices::DiskFaults disks = {};
    SimulatedLibrary::Faults tapes = {};
    std::uint32_t tape = 0;  // A number of a drive or cartridge, modulo how many there are.
    // Whether the node starts with an older table of media.
    bool older_media = false;
    // Whether the tapes are repaired before the node starts.
    bool repair_tapes = false;
};
const char* to_string(ObjectFault::Kind kind);

// A node with disks, clients that use its objects, and the faults they meet, in a simulated world
// of their own. The book keeps the first broken promise as a sentence.
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
    fabric::MemNetwork& network() { return network_.links(); }

    // All of these return whether every promise was kept.
    bool start();
    // Runs the users' tasks to their end, under these faults.
    bool play(std::vector<ObjectFault> faults = {});
    // Ends the node's life by a fault of this kind, and begins the next life.
    bool restart(const ObjectFault& how);
    bool restart(ObjectFault::Kind how, bool lose_indexes = false, bool lose_names = false);
    // The remaining users repeat lost writes; then the complete state is compared with the book.
    bool settle();
    // Restarts the node without a disk, and writes the disk off. REQUIRES: settle() was called.
    bool write_off(std::uint32_t disk);
    // Checks the disks' stores while no user works.
    bool check();
    // The number of completed checks so far.
    std::uint64_t check_count() const { return check_count_; }
    // Adds the removed disks again, and ends further removals.
    bool bring_back();
    void resume_moves() { moves_on_ = true; }
    // So far: disks that were added, that were removed, and that were not removed because they were
    // not empty.
    struct Moves {
        std::uint64_t came = 0;
        std::uint64_t went = 0;
        std::uint64_t stayed = 0;
    };
    const Moves& moves() const { return moves_; }
    // -- tapes: object_stage_tape.cc --
    // Repairs drives and library, and starts the node again; labels that were wrong are looked at.
    bool repair_tapes();
    // All objects come to be on tape.
    bool sync_tapes();
    // Recalls end, and then drives and robot do nothing any more.
    bool rest_tapes();
    // Compares all cartridges with the records of copies. Done when the node has ended.
    bool end_and_check_tapes();
    // Files and copies that were compared.
    struct TapesSeen {
        std::uint64_t files = 0;
        std::uint64_t copies = 0;
    };
    const TapesSeen& tapes_seen() const { return tapes_seen_; }

    // Reads all objects, as far as disk faults allow.
    bool read_all();
    // Removes all objects; afterwards no block is in use.
    bool empty();
    // Ends the users, and stops the node.
    bool end();

    const std::string& broken_promise() const { return book_.broken_promise(); }
    // The largest values seen so far, for one locality or disk.
    struct Most {
        std::uint64_t foms = 0;
        std::uint64_t waiting = 0;
        std::uint64_t changed_bytes = 0;
    };
    const Most& most() const { return most_; }
    // Faults that were applied before the work was done.
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
    void end_move(const daemon::DeviceRequests::Outcome& moved);
    bool is_open(const std::string& disk);
    // -- object_stage_tape.cc, object_stage_tape_faults.cc --
    class TapeCheck;
    bool is_ready();
    void carry_out_on_tapes(const ObjectFault& fault);
    void end_fault_of_tapes(const ObjectFault& fault);
    void repair_library();
    void put_right_labels();
    void damage_a_file(std::uint32_t number);
    void repack_a_cartridge(std::uint32_t number);
    static Task<void> order_repack(library::TapeLibrary* library, std::string barcode,
                                   std::uint32_t number);
    void format_empty(std::uint32_t number);
    Task<void> format(library::TapeLibrary* library, library::LibraryService::FormatWish wish);
    void bring_older_tape(std::uint32_t number);
    void excuse_cartridge(std::uint32_t element);
    void note_bad_cartridges();
    void note_lack_of_tape();
    std::optional<std::pair<std::uint32_t, std::uint32_t>> draw_pair(std::uint32_t number);
    std::string swap_labels(std::uint32_t number);
    Task<void> mislabel(library::TapeLibrary* library, std::uint32_t number);
    void excuse_copies(const std::vector<store::Copy>& copies);
    // Whether a file of a cartridge was damaged, or went away.
    bool is_harmed(const std::string& vsn, std::uint64_t file) const;
    std::vector<store::Copy> live_copies();
    // In storage elements, by address.
    std::vector<std::uint32_t> idle_cartridges();
    library::TapeLibrary* tape_library();
    bool do_tapes_rest();
    std::string describe_tapes();
    Task<void> load_foreign(library::TapeLibrary* library, core::Reactor* reactor, bool* done);

    core::VirtualWorld world_;
    const std::uint64_t overlay_bytes_;
    SimulatedNetwork network_;
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
    const Duration work_max_;
    const std::string tape_pool_;
    const std::uint32_t tape_copies_;  // Of each object of that pool.
    bool labels_swapped_ = false;
    std::vector<std::unique_ptr<devices::CartridgeImage>> taken_cartridges_;
    bool drives_failed_ = false;
    std::set<std::string> bad_cartridges_;  // By barcode, until the library is repaired.
    std::map<std::string, std::set<std::uint64_t>> damaged_files_;  // By VSN.
    std::map<std::string, std::uint64_t> files_left_;               // Of older tapes, by VSN.
    TapesSeen tapes_seen_;
    const bool checks_;
    std::uint64_t check_count_ = 0;
    Instant checks_due_ = kNever;  // The time of the next checks; kNever while checks run.
};

}  // namespace fopd::sim

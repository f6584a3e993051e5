#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/intrusive_list.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "devices/label.h"
#include "io_sched/main_scheduler.h"
#include "library/blame.h"
#include "library/copy_batch.h"
#include "library/copy_catalogue.h"
#include "library/drive_unit.h"
#include "library/fid_table.h"
#include "library/home_doors.h"
#include "library/library.h"
#include "library/library_bay.h"
#include "library/measured_drive.h"
#include "library/media_shelf.h"
#include "library/medium_tasks.h"
#include "library/options.h"
#include "library/recall_job.h"
#include "library/rescued_objects.h"
#include "library/robot.h"
#include "library/room_queue.h"
#include "library/staging_disks.h"
#include "library/tape_figures.h"

namespace fopd::library {

// The tape library of a node: decides which objects are written to cartridges and when, and brings
// recalled objects back. Works while its bay can be opened; until then it waits, and so do recalls.
//
// Lives on its locality's reactor.
class TapeLibrary final : public LibraryService, public LibraryBell {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        const core::Clock& clock;
        core::EventSink& events;
        io_sched::MainScheduler& io;  // The main scheduler of the locality.
        LibraryBay& bay;
        devices::NodeId node{};
    };
    TapeLibrary(const Parts& parts, LibraryOptions options);
    ~TapeLibrary() override;
    TapeLibrary(const TapeLibrary&) = delete;
    TapeLibrary& operator=(const TapeLibrary&) = delete;

    // Called once. The doors' localities outlive stop().
    void start(std::vector<HomeDoors::Door> doors);
    // Begins no new work, makes complete tape files durable, writes index files, and leaves the
    // cartridges in their drives. Operations of drives cannot be cancelled: waits for them until
    // `deadline`. Returns how many drives are still busy. Their operations may end at any later
    // time, when the stores are closed; then only unrecorded copies are lost. The library is
    // destroyed after the coroutines of its reactor. REQUIRES: the stores of all localities still
    // serve, and the scheduler is not stopped.
    Task<std::uint64_t> stop(Instant deadline);
    // Lets the drives end their operations, puts their cartridges back, and does not use the drives
    // again. Waits until `deadline` or stop() at the latest. Returns the drives that still have a
    // cartridge, or could not be unloaded. For a node that serves no clients any more; stop()
    // follows.
    Task<std::vector<DriveRow>> unload_all(Instant deadline);
    // The gate for tasks of other localities that use the library.
    core::Gate& gate() { return gate_; }
    // Any thread.
    const TapeFigures& figures() const { return figures_; }
    // The settings of the I/O scheduler have changed.
    void io_settings_changed() { check_drive_limits(); }
    // Whether the bay is open.
    bool is_open() const { return bay_library_ != nullptr; }
    LibraryCondition condition() const;

    // -- LibraryBell --
    void ring() override;

    // -- LibraryService --
    Task<Result<void>> sync(std::string pool, core::WaitOptions wait) override;
    std::vector<RecallRow> recalls(std::size_t rows_max) const override;
    PendingRecalls pending_recalls() const override;
    std::optional<RecallRow> find_recall(Ticket ticket) override;
    std::string why_recalls_wait() const override;
    std::vector<Cartridge> media() const override;
    Task<void> look_for_media() override;
    std::vector<DriveRow> drives() const override;
    std::optional<std::string> why_not_open() const override;
    Task<MediaOutcome> format(FormatWish wish) override;
    std::vector<FormatRow> formats() const override;
    Task<MediaOutcome> cancel_format(std::string barcode) override;
    Task<MediaOutcome> load(LoadWish wish) override;
    Task<MediaOutcome> unload(std::string drive) override;
    Task<MediaOutcome> export_medium(ExportWish wish) override;
    Task<MediaOutcome> import_media(std::string barcode) override;
    Task<MediaOutcome> take_drive_down(std::string drive) override;
    Task<MediaOutcome> bring_drive_up(std::string drive) override;
    Task<MediaOutcome> repack(std::string barcode) override;
    Task<MediaOutcome> cancel_repack(std::string barcode) override;
    std::optional<MediumWork> repack_work(std::string_view barcode) const override;
    Task<MediaOutcome> scrub(std::string barcode) override;
    Task<MediaOutcome> cancel_scrub(std::string barcode) override;
    std::optional<MediumWork> scrub_work(std::string_view barcode) const override;
    Task<MediaOutcome> rescue(RescueWish wish) override;
    Task<MediaOutcome> cancel_rescue(std::string barcode) override;
    std::optional<MediumWork> rescue_work(std::string_view barcode) const override;

private:
    // A sync fails when so many batches in a row have failed. Each batch may use another drive or
    // cartridge.
    static constexpr std::uint64_t kFailuresMax = 4;

    class FormatJob;
    class QueuedFormat;
    class Handling;
    struct Unit {
        std::unique_ptr<MeasuredDrive> measured;
        std::unique_ptr<DriveUnit> drive;
        io_sched::IoDevice* device = nullptr;
        bool is_handled = false;  // An administrator's operation uses the drive.
        CartridgeId loads = 0;    // The cartridge that load() is mounting; 0: none.
        bool is_indexing = false;
        bool is_emptying = false;  // unload_all() is unloading the drive.
        bool rests = false;        // The drive is in resting_.
    };
    // A batch that waits for a cartridge, or is being written.
    struct WaitingBatch;
    struct Serving;
    class AgePlace;
    struct Recall;
    class ReadAwaiter;
    struct Pool {
        TapePoolOptions options;
        objects::PoolId id = 0;
        TapePoolFigures* figures = nullptr;
        std::uint32_t syncs = 0;          // Waiting callers of sync().
        std::uint32_t moves = 0;          // Repacks that wait for copies.
        std::uint32_t batches = 0;        // Batches in progress.
        std::uint64_t failures = 0;       // Failed batches since the last successful one.
        std::uint64_t failures_ever = 0;  // Failed batches.
        // No batch begins before either time. Both are set after failures. A new caller that waits
        // for copies resets not_before, but not paused_until.
        Instant not_before{};
        Instant paused_until{};
        bool is_short_of_tape = false;    // The event library.no_cartridge was emitted.
        bool is_short_of_drives = false;  // The event library.too_few_drives was emitted.
    };

    // -- tape_library.cc: life --
    Task<void> run();
    Task<void> end();
    std::uint64_t say_left() const;
    Task<Result<void>> open();
    Task<Result<void>> open_parts();
    Task<Result<void>> open_drives();
    enum class Sessions : std::uint8_t { kEnd, kLeave };
    Task<void> close_drives(Sessions sessions);
    void show_drives();
    void say_up(const DriveUnit& unit);
    void check_drive_limits();
    Task<void> read_news();
    Task<void> show_media_to_homes();
    void count_waiting();
    void tell_changed() {
        ++changes_;
        changed_.wake_all();
    }

    // -- tape_inventory.cc --
    class InDrives;
    enum class Inventory : std::uint8_t { kFirst, kAgain };
    bool take_inventory(Inventory which);
    Task<void> look_again();
    Task<void> look_now();
    void take_strays();
    bool has_stray(const Unit& unit) const;
    Task<void> adopt_stray(Unit* unit, CartridgeId id);
    Task<void> put_stray_away(Unit* unit);
    Task<void> take_missing_from_down();
    Task<Result<void>> adopt_recorded_media();
    void adopt(CartridgeId id, const RecordedMedium& recorded);

    // -- tape_migration.cc --
    struct Due;
    // When a batch of a group last began, and whether the last attempt lacked cartridges or drives.
    struct Turn {
        Instant begun_at{};
        // stuck_count_ at the last attempt, if that lacked something; 0: it did not.
        std::uint64_t stuck = 0;
        bool lacks_drives = false;
    };
    Instant begin_batches();
    std::vector<Due> due_groups(Instant* next);
    Task<void> migrate(StagedObjects::GroupKey group, Pool* pool);
    bool may_look_for_media(const Pool& pool) const;
    Task<std::vector<CopyBatch::Item>> take_items(StagedObjects::GroupKey group,
                                                  StagedObjects::Limits limits);
    Task<void> write_batch(Pool* pool, std::vector<CopyBatch::Item> items,
                           std::uint64_t free_bytes);
    // A batch could not be written to these cartridges: the pool pauses.
    void note_write_failed(Pool& pool, const std::vector<io_sched::IoPart>& where);
    Task<void> put_back(const std::vector<CopyBatch::Item>* items,
                        std::optional<store::Fid> given_up);
    // The free space on the cartridges of a pool, and on blank ones that it may get.
    struct Room {
        std::uint64_t free_bytes = 0;
        std::uint64_t largest_bytes = 0;  // The capacity of the largest cartridge when empty.
        CartridgeId blank = 0;            // A blank cartridge that the pool may get; 0: none.

        std::uint64_t for_batch() const;
    };
    static std::uint64_t largest_of(const Pool& pool, std::uint64_t free_bytes);
    Room room_of(const Pool& pool, std::uint64_t needed_bytes) const;
    // Returns the room of the pool. Promises it a blank cartridge first, if it needs one.
    Room room_for(const Pool& pool, std::uint64_t needed_bytes);
    Task<bool> has_waiting(StagedObjects::GroupKey group);
    // Gives up the waiting objects that have more than `bytes`. Returns how many.
    Task<std::size_t> give_up_larger(StagedObjects::GroupKey group, std::uint64_t bytes);
    void say_short_of_tape(Pool& pool);
    // Whether enough drives are up: each copy of a batch needs one.
    bool has_drives_for(const Pool& pool) const;
    void say_short_of_drives(Pool& pool);
    void say_too_large(store::Fid fid, std::string_view name);
    bool is_due(const Pool& pool, const StagedObjects::Group& group) const;
    std::map<StagedObjects::GroupKey, StagedObjects::Group> all_groups() const;
    Pool* find_pool(objects::PoolId id);

    Instant offer_blanks();
    bool has_idle_drives(const Pool& pool) const;
    bool has_idle_cartridges(const Pool& pool, std::uint64_t needed_bytes) const;

    // -- tape_sessions.cc --
    class IndexJob;
    Instant begin_indexes();
    Task<void> write_index(Unit* unit, CartridgeId id);

    // -- tape_repack.cc --
    struct Repacking;
    struct MoveBatch;
    std::string why_not_repack(const Cartridge& cartridge) const;
    Task<Result<StagingDisks::Live>> live_on(store::Cartridge on);
    std::uint64_t room_beside(const Pool& pool, CartridgeId id) const;
    void resume_repacks();
    Task<Result<StagingDisks::Live>> live_when_here(Repacking* repack);
    Task<Result<void>> until_earlier_recorded(Repacking* repack);
    void say_repack_ended(const std::string& barcode, const MediumWork& work) const;
    void begin_repack(CartridgeId id);
    Task<void> run_repack(Repacking* repack);
    Task<Result<void>> move_all(Repacking* repack);
    Task<Result<void>> until_homes_know(Repacking* repack);
    struct CopyPage;
    Task<Result<CopyPage>> copies_from(store::Cartridge on, store::CopyPosition from);
    Task<Result<void>> next_batch(Repacking* repack, MoveBatch* batch);
    Task<Result<void>> move(Repacking* repack, MoveBatch* batch);
    Task<Result<void>> bring_back(Repacking* repack, MoveBatch* batch);
    Task<Result<RecallEnd>> end_of_recall(Repacking* repack, std::uint32_t locality, store::Fid fid,
                                          bool* writes);
    Task<Result<void>> wait_for_moves(Repacking* repack, MoveBatch* batch);
    Task<Result<void>> let_go(Repacking* repack, MoveBatch* batch);
    Task<void> let_leave(Repacking* repack, std::uint32_t locality, store::Fid fid);
    Task<void> fail_move(Repacking* repack, MoveBatch* batch, store::Fid fid, std::string reason);

    // -- tape_scrub.cc --
    struct Scrubbing;
    class ScrubJob;
    void begin_scrubs();
    Task<void> run_scrub(Scrubbing* scrub);
    Task<Result<void>> read_all(Scrubbing* scrub);
    Task<Result<void>> read_page(Scrubbing* scrub, CopyPage* page);
    Task<Result<void>> read_copies(Scrubbing* scrub, ScrubJob* job);
    Task<bool> can_read_another(Scrubbing* scrub, const CopyPage* page, std::size_t failed);
    Task<void> note_damage(Scrubbing* scrub, CopyPage* page, std::size_t index, Error error);
    Task<Result<void>> save_scrub(Scrubbing* scrub);
    Task<void> end_scrub(Scrubbing* scrub, Result<void> result);

    // -- tape_rescue.cc --
    struct Rescuing;
    struct FoundCopy;
    struct FoundPieces;
    class RescueJob;
    struct RescueHome {
        std::uint32_t locality = 0;
        store::Fid fid{};       // The object's id here.
        bool is_there = false;  // The object exists already.
    };
    std::string why_not_rescue(const Cartridge& cartridge, std::string_view pool) const;
    void begin_rescues();
    Task<void> run_rescue(Rescuing* rescue);
    Task<Result<void>> read_to_rescue(Rescuing* rescue);
    Task<void> end_rescue(Rescuing* rescue, Result<void> result);
    Task<void> not_rescued(Rescuing* rescue, const FoundCopy* found, std::string reason);
    Task<void> take_batch(Rescuing* rescue);
    Task<void> take_copy(Rescuing* rescue, const FoundCopy* found);
    const Pool* pool_for(CartridgeId id, const store::Member& member);
    Task<Result<void>> take_over(Rescuing* rescue, const FoundCopy* found);
    Task<Result<RescuedObjects::Answer>> put_rescued(std::uint32_t locality,
                                                     const RescuedObjects::Wish* wish);
    Task<Result<RescueHome>> find_home(objects::PoolId pool, store::Fid made);
    Task<Result<std::uint32_t>> locality_of(objects::PoolId pool, store::Slot slot);
    Task<Result<bool>> does_give_way(objects::PoolId pool, store::Fid fid);
    Task<Result<bool>> is_made_at_home(objects::PoolId pool, store::Fid fid);

    // -- tape_recalls.cc --
    void take_recall(std::uint32_t locality, RecallNote note);
    void end_recall(store::Fid fid);
    Recall* add_recall(std::uint32_t locality, const RecallNote& note);
    void erase_recall(Recall& recall);
    void put_in_order_of_age(Recall& recall);
    void set_over(Recall& recall);
    void count_recalls();
    void stop_recalls();
    void end_unserved(Recall& recall);
    Task<void> retry_stranded();
    Task<void> retry(store::Fid fid);
    Task<std::optional<RecallNote>> note_of(const Recall* recall);
    void begin_to_serve(Recall* recall, RecallNote note);
    Task<void> serve_unread(store::Fid fid);
    Task<void> serve(Recall* recall);
    Task<void> serve_note(Recall* recall);
    Task<bool> wait_for_room(Recall* recall);
    void say_recalls_wait(const Recall& recall, const Error& why);
    Task<void> fail(Recall* recall, std::string reason, const Error* error = nullptr);

    // -- tape_recall_lists.cc --
    RecallRow row_of(const Recall& recall) const;
    struct Expected {
        Recall* recall = nullptr;
        std::optional<Instant> end{};
    };
    std::vector<Expected> expected_ends() const;
    std::vector<Recall*> ordered_recalls() const;
    void list_recalls(std::size_t rows_max) const;

    // -- tape_service.cc --
    Unit* find_unit(std::string_view drive);
    // Null: the table has no such cartridge, or the library is not open.
    const Cartridge* known_cartridge(std::string_view barcode) const;
    Task<const Cartridge*> find_medium(std::string barcode);
    const Unit* unit_with(CartridgeId cartridge) const;
    bool is_in_use(CartridgeId cartridge) const;
    std::string why_not_load(const Unit& unit, const Cartridge& cartridge) const;
    Task<void> empty(Unit* unit, Instant deadline);
    bool are_all_drives_down() const;
    const char* why_not_written(const Pool& pool) const;
    enum class FewDrives : std::uint8_t { kFail, kWait };
    using Left = std::vector<std::vector<store::Fid>>;  // By locality.
    Task<Result<void>> wait_for_copies(Pool* pool, Left* left, FewDrives few_drives,
                                       core::WaitOptions wait);
    Task<bool> are_stuck(const Left* left, std::set<StagedObjects::GroupKey> groups);
    std::set<StagedObjects::GroupKey> stuck_groups(const Pool& pool, std::uint64_t since,
                                                   FewDrives few_drives) const;
    Task<MediaOutcome> may_format(const Cartridge* cartridge, FormatForce force);
    std::string why_not_format(const Cartridge& cartridge, FormatForce force) const;
    Task<Result<CopiesThere>> count_copies(const Cartridge* cartridge);
    Task<MediaOutcome> forget_copies(const Cartridge* cartridge, FormatForce force);

    // -- tape_exchange.cc --
    std::string why_wanted(const Cartridge& cartridge) const;
    std::string why_not_export(const Cartridge& cartridge) const;
    Task<MediaOutcome> may_export(const ExportWish* wish, CopiesThere* there);
    Task<Result<void>> take_out_of_use(CartridgeId id);
    Task<Result<void>> use_again(CartridgeId id);
    Task<Result<void>> bring_in(std::string barcode);
    std::vector<std::string> importable() const;

    const Parts parts_;
    const LibraryOptions options_;
    TapeFigures figures_;
    std::vector<Pool> pools_;
    core::Gate gate_;
    core::Gate ending_;  // The gate that end() enters.
    core::CancelSource stop_;
    bool stopping_ = false;
    std::unique_ptr<HomeDoors> homes_;
    std::unique_ptr<CopyCatalogue> catalogue_;
    std::unique_ptr<BayLibrary> bay_library_;
    std::unique_ptr<Robot> robot_;
    std::unique_ptr<MediaShelf> shelf_;
    Blame blame_{options_.health};
    std::vector<Unit> units_;
    enum class Opening : std::uint8_t {
        kFailed,  // There was no attempt, or the next one follows after a pause.
        kRuns,    // Some parts may be open.
        kSucceeded,
    };
    bool is_ready() const { return opening_ == Opening::kSucceeded; }
    Opening opening_ = Opening::kFailed;
    std::string not_open_;  // Why the last attempt to open the library failed.
    // Technologies for which library.no_drive_limits was emitted, and nothing has changed since.
    std::set<std::string_view> without_limits_;
    // The state of look_again().
    std::uint64_t looks_wanted_ = 0;
    std::uint64_t looks_done_ = 0;
    bool looks_now_ = false;
    core::WaitQueue looked_;
    std::optional<Instant> last_look_;
    std::set<std::uint32_t> nameless_;  // Elements for which library.no_barcode was emitted.
    // MediaShelf::changes() when the states were last sent to the homes.
    std::uint64_t media_shown_ = 0;
    bool rung_ = false;
    core::WaitQueue rings_;
    core::WaitQueue changed_;  // Woken when a batch has ended, or the homes have told of changes.
    std::uint64_t changes_ = 0;
    std::vector<std::vector<StagedObjects::Group>> groups_;       // By locality.
    std::vector<std::vector<StagedObjects::Uncopied>> uncopied_;  // By locality.
    std::vector<WaitingBatch*> waiting_batches_;
    std::vector<QueuedFormat*> formats_;  // The oldest first.
    // Drives that are not used any more, after unload_all().
    std::vector<std::unique_ptr<Handling>> resting_;
    std::set<StagedObjects::GroupKey> writing_;
    std::map<StagedObjects::GroupKey, Turn> turns_;
    std::uint64_t batches_begun_ = 0;
    // How often a batch could not begin, because a cartridge or drives were missing.
    std::uint64_t stuck_count_ = 0;
    core::IntrusiveList<AgePlace> recalls_by_age_;
    FidTable<Recall> recalls_;
    std::size_t over_count_ = 0;  // Of those in recalls_, how many have ended.
    // Recalls for whose cartridges there was no drive, or no changer.
    std::vector<store::Fid> stranded_;
    bool retries_stranded_ = false;
    // By disk, for disks that had no room for a recall.
    std::map<store::Slot, RoomQueue> room_queues_;
    Duration stranded_pause_{0};  // The last pause; it grows until a cartridge can be loaded.
    // By reason, which is in static storage: when library.recalls_wait was last emitted.
    std::map<std::string_view, Instant> said_waits_;
    Instant look_again_at_{};  // When the list of find_recall() has to be made again.
    // The last list of recalls(), when it has to be made again, and its `rows_max`.
    mutable std::vector<RecallRow> listed_recalls_;
    mutable Instant list_again_at_{};
    mutable std::size_t listed_rows_max_ = 0;
    MediumTasks<Repacking> repacks_;
    MediumTasks<Scrubbing> scrubs_;
    MediumTasks<Rescuing> rescues_;
    // The pieces of incomplete objects, by the id with which the object was made and its version.
    std::map<std::pair<store::Fid, std::uint64_t>, FoundPieces> found_pieces_;
};

}  // namespace fopd::library

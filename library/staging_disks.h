#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "library/known_media.h"
#include "library/library_bell.h"
#include "library/options.h"
#include "library/outgoing_copies.h"
#include "library/recall.h"
#include "library/rescued_objects.h"
#include "library/returned_objects.h"
#include "library/returning_objects.h"
#include "library/staged_objects.h"
#include "library/staging.h"
#include "objects/home_volume.h"
#include "objects/range_locks.h"
#include "objects/stores.h"
#include "store/copy.h"
#include "store/tape/tape_file.h"

namespace fopd::library {

// The generation and pool of a cartridge, as the records of copies on it tell.
struct RecordedMedium {
    std::uint32_t generation = 0;
    objects::PoolId pool = 0;  // The pool of an object that has a copy there.
};
using RecordedMedia = std::map<store::VsnText, RecordedMedium>;
// Counts of the objects that have live copies on a cartridge.
struct CopiesThere {
    std::uint64_t objects = 0;
    // Objects whose bytes are neither on a disk nor on another good cartridge.
    std::uint64_t only_here = 0;
    static constexpr std::size_t kNamesMax = 3;
    std::vector<std::string> names = {};  // The names of some of the objects in only_here.
};

// A recall, as the object's home reports it to the library when it is made, and again after each
// change.
struct RecallNote {
    store::Fid fid{};
    std::uint64_t ticket = 0;
    std::uint8_t priority = 0;
    std::uint64_t size_bytes = 0;
    Instant asked_at{};
    std::int64_t asked_unix_ns = 0;     // The recorded time of the request; it orders recalls.
    std::vector<store::Copy> copies{};  // The live copies of the object.
};

struct StagingNews {
    std::vector<StagedObjects::Group> groups{};
    std::vector<StagedObjects::Uncopied> uncopied{};
    std::vector<RecallNote> recalls{};  // In no order.
    std::vector<store::Fid> ended{};    // Recalls that have ended.
    // Disks that had no room for a recall, and may have room now.
    std::vector<store::Slot> rooms{};
    bool has_more = false;      // Further recalls have to be reported.
    bool has_new_disk = false;  // A new disk, whose records may name unknown cartridges.
};

// Implements Staging, and the functions of a locality that the library uses. Lives on the reactor
// of the stores.
class StagingDisks final : public Staging, RoomMaker, objects::ObjectObserver {
public:
    // The stores outlive it. Its coroutines enter the gate of the stores' duties.
    StagingDisks(objects::Stores& stores, const LibraryOptions& options);
    StagingDisks(const StagingDisks&) = delete;
    StagingDisks& operator=(const StagingDisks&) = delete;
    ~StagingDisks() override;

    // Called once, when all present disks have been opened. The bell outlives the duties of the
    // stores.
    struct Library {
        core::Reactor* reactor = nullptr;
        LibraryBell* bell = nullptr;
    };
    void begin(const Library& library);
    // Called when a disk is opened later.
    void look_at(store::Slot slot);

    // -- Staging --

    Task<Result<RecallAsked>> recall(RecallWish wish, core::WaitOptions wait) override;
    Task<Result<RecallEnd>> wait_for_recall(Ticket ticket, store::ClientId reader,
                                            core::WaitOptions wait) override;
    void note_read(store::Fid fid, store::ClientId reader, std::uint64_t bytes) override;
    Task<Result<void>> cancel_recall(Ticket ticket, core::WaitOptions wait) override;
    Task<Result<void>> release(store::Fid fid, core::WaitOptions wait) override;
    void want_room(store::Slot slot, std::uint64_t free_blocks) override;

    // -- for the library --

    StagingNews take_news();
    // The recall of an object; nothing: it has none.
    std::optional<RecallNote> note_of(store::Fid fid);
    StagedObjects& staged() { return staged_; }
    // The objects of the pool that lack copies, after all changes so far.
    Task<Result<std::vector<store::Fid>>> not_on_tape(objects::PoolId pool);
    // The objects of `fids` that still lack copies and were not removed.
    struct NotOnTape {
        std::vector<store::Fid> fids{};
        bool all_given_up = true;  // None of these objects can be copied as it is.
    };
    Task<Result<NotOnTape>> still_not_on_tape(std::vector<store::Fid> fids);
    // Called when a node stops although an operation of a drive is still running: closes the
    // objects that the drive copies or recalls. The operation does not use them any more. REQUIRES:
    // the stores' duties have ended.
    void let_go() {
        outgoing_.close_all();
        returning_.drop_all();
    }
    OutgoingCopies& outgoing() { return outgoing_; }
    ReturningObjects& returning() { return returning_; }
    RescuedObjects& rescued() { return rescued_; }

    // The cartridges that have live copies of objects here.
    Result<RecordedMedia> recorded_media();
    // The newest generation of a cartridge in the records of copies on it; 0: there is no record.
    std::uint32_t newest_generation(store::VsnText vsn) const;
    // Sets the states of all cartridges. Objects are released only if good cartridges have them.
    // Forgets copies from before the last format of their cartridge, which are in the records of a
    // disk that was away during the format.
    Task<Result<void>> set_media(KnownMedia media);
    // The live copies on a cartridge, a page at a time; the cursor moves behind the page. An empty
    // page: there are no more. kBusy: a disk is missing, so copies may be unknown.
    struct CopyCursor {
        store::Cartridge on{};
        store::CopyPosition first{};  // Copies before it are left out.
        // The position of the cursor.
        store::Slot slot = 0;
        store::CopyPosition position{};
    };
    Result<std::vector<store::TapeEntry>> list_copies(CopyCursor& cursor);
    // -- moving copies from a cartridge that is repacked --

    struct Live {
        std::uint64_t copies = 0;
        std::uint64_t bytes = 0;
    };
    // The number and bytes of the live copies on a cartridge. kBusy: a disk is missing.
    Result<Live> live_on(store::Cartridge on);
    // A live copy on a cartridge that is being repacked or scrubbed.
    struct Move {
        store::Copy copy{};
        std::uint64_t object_bytes = 0;
        bool is_on_disk = false;
        // Other good cartridges have as many copies of the bytes as the pool requires.
        bool is_done = false;
    };
    struct Moves {
        std::vector<Move> moves{};  // In the order of the tape.
        // The list is complete up to this position, and other copies may follow. Nothing: the list
        // has the last copies of the cartridge.
        std::optional<store::CopyPosition> known_to{};
        // The bytes that the recalled objects of a batch may take on each disk.
        std::map<store::Slot, std::uint64_t> room{};
    };
    // The live copies on a cartridge from a position on, a page at a time. kBusy: a disk is
    // missing.
    Result<Moves> list_moves(store::Cartridge on, store::CopyPosition from);
    // For each of the objects: removes its copies on the cartridge if other good cartridges have as
    // many copies as the pool requires. Durable on return.
    Task<Result<void>> drop_moved(store::Cartridge on, std::vector<store::Fid> fids);

    // Records copies that are durable on tape. Does not record copies of an object that would still
    // lack other copies.
    struct Recorded {
        std::uint64_t live = 0;
        // Copies of objects that have changed, were removed, or lack other copies.
        std::uint64_t dead = 0;
        // Copies that a disk failed to record; `reason` is the first error.
        std::uint64_t unrecorded = 0;
        Error reason{};
    };
    Task<Result<Recorded>> record(std::vector<store::Copy> copies);
    // Called when a batch has ended: its objects that still need a copy wait again.
    Task<Result<void>> put_back(std::vector<store::Fid> fids);
    // Called when all bytes of a recalled object are written: ends the attempt and the recall.
    Task<Result<void>> end_return(store::Fid fid);
    // The name of an object; empty: it has none, or was removed.
    std::string name_of(store::Fid fid) const;
    // Ends a recall because no copy of the object can be read. False: the object does not need the
    // recall any more, so it has not failed.
    Task<Result<bool>> fail_recall(store::Fid fid, RecallEnd failure);
    // Counts the copies on a cartridge of the objects on present disks.
    Task<Result<CopiesThere>> count_copies(store::VsnText vsn);
    // Forgets all copies on a cartridge. Durable on return. kBusy: objects need them, and `loss` is
    // kRefused.
    Task<Result<void>> forget_cartridge(store::VsnText vsn, store::Volume::Loss loss);
    // The number of objects on tape only whose last recall has failed.
    std::uint64_t unreadable_count() const;
    // The number of objects that were released since the start.
    std::uint64_t released_count() const { return released_count_; }
    // The number of attempts to release an object. It bounds the work for objects that cannot be
    // released, which nothing else shows.
    std::uint64_t release_tries() const { return release_tries_; }

private:
    class Scan;
    struct Waiters;
    void object_changed(store::Fid fid) override;
    Task<Result<void>> make_room(store::Slot slot, std::uint64_t free_blocks,
                                 core::WaitOptions wait) override;

    Result<void> check_all_here() const;
    Result<std::optional<store::TapeEntry>> entry_of(store::Volume& volume,
                                                     const store::Copy& copy) const;
    const TapePoolOptions* tape_pool(objects::PoolId pool) const;
    std::uint32_t copies_wanted(objects::PoolId pool) const;
    std::vector<store::Copy> complete_ones(std::vector<store::Copy> copies);
    Result<void> count_copy(objects::HomeVolume& home, const store::Copy& copy, CopiesThere& there);
    bool is_staging(const objects::HomeVolume& home) const;
    Task<void> look_at_all(store::Slot slot);
    Task<Result<void>> take_recalls(objects::HomeVolume* home);
    Task<Result<void>> look_at_copies(objects::HomeVolume* home, store::VsnText vsn);
    bool has_moved(store::Volume& volume, const store::Copy& copy);
    void begin_to_settle();
    Task<void> settle();
    Task<void> until_settled();
    void look(store::Fid fid, Instant since);
    Instant instant_of(WallTime time) const;
    void ring();
    Task<void> ring_bell();

    bool has_recall(objects::HomeVolume& home, store::Fid fid) const;
    void tell_of(store::Fid fid);
    std::shared_ptr<Waiters> waiters_for(Ticket ticket);
    std::vector<store::ClientId> readers_of(Ticket ticket) const;
    void finish(store::Fid fid, RecallEnd end);
    Task<Result<void>> lock_attributes(objects::HomeVolume* home, store::Fid fid,
                                       objects::RangeLock* lock, core::WaitOptions wait);
    void remember(store::Fid fid, const RecallEnd& end);
    void forget_end(store::Fid fid);
    Task<void> end_empty_recall(store::Fid fid);
    Task<Result<void>> unpin(objects::HomeVolume* home, store::Fid fid, core::WaitOptions wait);
    Task<Result<void>> put_recall(objects::HomeVolume* home, RecallWish wish,
                                  core::WaitOptions wait);

    Task<Result<void>> forget_outdated(objects::HomeVolume* home);
    Result<bool> is_on_good_media(objects::HomeVolume& home, const store::Object& object,
                                  store::Fid fid, std::optional<store::VsnText> without = {});
    Task<Result<void>> release_from(objects::HomeVolume* home, store::Fid fid,
                                    core::WaitOptions wait);
    void keep_room(store::Slot slot);
    bool is_too_full(const objects::HomeVolume& home) const;
    bool should_leave(const objects::HomeVolume& home) const;
    bool lacks_room(const objects::HomeVolume& home) const;
    bool is_urgent(objects::PoolId pool) const;
    Task<void> release_oldest(store::Slot slot);
    Task<void> release_some(objects::HomeVolume* home);
    // Keeps a recalled object on the disk for a while, so that waiting clients can read it.
    void keep_returned(store::Fid fid, std::span<const store::ClientId> readers);
    void room_may_have_come(store::Slot slot) override;
    Task<void> let_returned_go();
    std::uint32_t high_mark(const objects::HomeVolume& home) const;
    std::uint32_t low_mark(const objects::HomeVolume& home) const;
    Instant now() const { return stores_.parts().reactor.now(); }

    objects::Stores& stores_;
    const std::vector<TapePoolOptions> pools_;
    std::vector<objects::PoolId> pool_ids_;     // The ids of pools_.
    std::vector<objects::PoolId> staging_ids_;  // The ids of the staging of each of pools_.
    Library library_;
    KnownMedia media_;
    bool knows_media_ = false;  // set_media() was called.
    StagedObjects staged_;
    OutgoingCopies outgoing_;
    ReturningObjects returning_;
    RescuedObjects rescued_;

    std::map<store::Fid, Instant> changed_;  // Changed objects that look() has not seen yet.
    bool settling_ = false;
    core::WaitQueue settled_;
    bool rings_ = false;
    bool ring_again_ = false;
    // Recalls are records of their objects, and need no memory here.
    std::map<store::Fid, std::shared_ptr<Waiters>> waiters_;  // The callers that wait for a recall.
    std::set<store::Fid> news_;      // New or changed recalls to report to the library.
    std::vector<store::Fid> ended_;  // Ended recalls to report to the library.
    bool has_new_disk_ = false;      // A new disk to report to the library.
    std::uint64_t tickets_made_ = 0;
    // How the latest failed and cancelled recalls have ended, and the order of their ends. Kept
    // because a client may ask only after its recall has ended.
    std::map<store::Fid, RecallEnd> bad_ends_;
    std::deque<store::Fid> badly_ended_;
    // Disks with a release_oldest() in progress. True: an object has changed since its last scan.
    std::map<store::Slot, bool> releasing_;
    ReturnedObjects returned_;
    // Disks on which make_room() has found too little room, and on which none has become free
    // since.
    std::set<store::Slot> lacking_room_;
    std::vector<store::Slot> rooms_;  // Disks to report to the library in StagingNews::rooms.
    // How many free blocks a disk needs for changes that did not fit, and until when this holds.
    struct WantedRoom {
        std::uint64_t free_blocks = 0;
        Instant until{};
    };
    std::map<store::Slot, WantedRoom> wanted_room_;
    std::uint64_t released_count_ = 0;
    std::uint64_t release_tries_ = 0;
};

}  // namespace fopd::library

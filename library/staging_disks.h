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
#include "library/returning_objects.h"
#include "library/staged_objects.h"
#include "library/staging.h"
#include "objects/home_volume.h"
#include "objects/range_locks.h"
#include "objects/stores.h"
#include "store/copy.h"
#include "store/tape/tape_file.h"

namespace fopd::library {

// A cartridge, as records of copies on it tell.
struct RecordedMedium {
    std::uint32_t generation = 0;
    objects::PoolId pool = 0;  // Of an object that has a copy there.
};
using RecordedMedia = std::map<store::VsnText, RecordedMedium>;
// The objects that have live copies on a cartridge.
struct CopiesThere {
    std::uint64_t objects = 0;
    std::uint64_t only_here = 0;  // Whose bytes are neither on a disk nor on another good one.
    static constexpr std::size_t kNamesMax = 3;
    std::vector<std::string> names = {};  // Of some of those that have one.
};

// A recall, as the library learns of it. Told again when it has changed.
struct RecallNote {
    store::Fid fid{};
    std::uint64_t ticket = 0;
    std::uint8_t priority = 0;
    std::uint64_t size_bytes = 0;
    Instant asked_at{};
    std::int64_t asked_unix_ns = 0;     // The same, as it is recorded: by it recalls have an order.
    std::vector<store::Copy> copies{};  // Of its content.
};

struct StagingNews {
    std::vector<StagedObjects::Group> groups{};
    std::vector<StagedObjects::Uncopied> uncopied{};
    std::vector<RecallNote> recalls{};  // In no order.
    std::vector<store::Fid> ended{};    // Recalls that are over.
    bool has_more = false;              // Recalls that the library has to learn of.
    bool has_new_disk = false;          // Its records may name cartridges that are not known.
};

// Staging, as the library uses it, too. Lives on the reactor of the stores.
class StagingDisks final : public Staging, RoomMaker, objects::ObjectObserver {
public:
    // The stores outlive it. Its work is one of their duties.
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
    // A disk was opened later.
    void look_at(store::Slot slot);

    // -- Staging --

    Task<Result<RecallAsked>> recall(RecallWish wish, core::WaitOptions wait) override;
    Task<Result<RecallEnd>> wait_for_recall(Ticket ticket, core::WaitOptions wait) override;
    Task<Result<void>> cancel_recall(Ticket ticket, core::WaitOptions wait) override;
    Task<Result<void>> release(store::Fid fid, core::WaitOptions wait) override;
    void want_room(store::Slot slot, std::uint64_t free_blocks) override;

    // -- for the library --

    StagingNews take_news();
    // Nothing: the object has no recall.
    std::optional<RecallNote> note_of(store::Fid fid);
    StagedObjects& staged() { return staged_; }
    // Objects of the pool whose content is not on tape, after all changes so far.
    Task<Result<std::vector<store::Fid>>> not_on_tape(objects::PoolId pool);
    // Which of these have no copy of their content, and are not gone.
    struct NotOnTape {
        std::vector<store::Fid> fids{};
        bool all_given_up = true;  // None of them can be copied as it is.
    };
    Task<Result<NotOnTape>> still_not_on_tape(std::vector<store::Fid> fids);
    // The library has left a drive's operation running, whose objects stay in hand here: it does
    // nothing more with them. REQUIRES: the stores' duties have ended.
    void let_go() {
        outgoing_.close_all();
        returning_.drop_all();
    }
    OutgoingCopies& outgoing() { return outgoing_; }
    ReturningObjects& returning() { return returning_; }

    // The cartridges that have live copies of objects here.
    Result<RecordedMedia> recorded_media();
    // The newest label under which a copy on the cartridge was recorded; 0: none was.
    std::uint32_t newest_generation(store::VsnText vsn) const;
    // Sets what is known of all media. Objects leave the disks only if good ones have them. Forgets
    // the copies that media had before their last format, which a disk may have that was away
    // then.
    Task<Result<void>> set_media(KnownMedia media);
    // The live copies on a cartridge, some at a time; the cursor moves behind those that are
    // returned. None: there are no more. kBusy: a disk that may have some is not here.
    struct CopyCursor {
        store::Cartridge on{};
        store::CopyPlace first{};  // Copies before it are left out.
        // Where it is.
        store::Slot slot = 0;
        store::CopyPlace place{};
    };
    Result<std::vector<store::TapeEntry>> list_copies(CopyCursor& cursor);
    // -- moving copies from a cartridge that is repacked --

    struct Live {
        std::uint64_t copies = 0;
        std::uint64_t bytes = 0;
    };
    // What is live on a cartridge. kBusy: a disk that may have some is not here.
    Result<Live> live_on(store::Cartridge on);
    // A copy, for those who move or read all that is on a cartridge.
    struct Move {
        store::Copy copy{};
        std::uint64_t object_bytes = 0;
        bool is_on_disk = false;
        bool is_done = false;  // It has the other copies that it needs.
    };
    struct Moves {
        std::vector<Move> moves{};  // In the order of the tape.
        // What lies behind it may be missing; nothing: all are there.
        std::optional<store::CopyPlace> known_to{};
        // What objects that come back may take of each disk.
        std::map<store::Slot, std::uint64_t> room{};
    };
    // The live copies on a cartridge from a place on, some at a time. kBusy: as above.
    Result<Moves> list_moves(store::Cartridge on, store::CopyPlace from);
    // Ends the copies on a cartridge of those of the objects that have the other ones they need.
    // Durable on return.
    Task<Result<void>> drop_moved(store::Cartridge on, std::vector<store::Fid> fids);

    // Records copies that are durable on tape, and with which their objects have as many as they
    // should have.
    struct Recorded {
        std::uint64_t live = 0;
        // Their objects have changed, are gone, or lack other copies.
        std::uint64_t dead = 0;
        // Their disks could not record them, the first of these for this reason.
        std::uint64_t unrecorded = 0;
        Error reason{};
    };
    Task<Result<Recorded>> record(std::vector<store::Copy> copies);
    // The copying of objects that were taken has ended: those that still need a copy wait again.
    Task<Result<void>> put_back(std::vector<store::Fid> fids);
    // The bytes of an object were written; ends the attempt and its recall.
    Task<Result<void>> end_return(store::Fid fid);
    // Of an object; empty: it has none, or is gone.
    std::string name_of(store::Fid fid) const;
    // No copy of the object can be read. False: it does not need its recall any more, which has
    // ended as one that is done.
    Task<Result<bool>> fail_recall(store::Fid fid, RecallEnd failure);
    // Of the objects on disks that are here.
    Task<Result<CopiesThere>> count_copies(store::VsnText vsn);
    // The copies on a cartridge are gone, durably. kBusy: objects need them, and `loss` refuses
    // that.
    Task<Result<void>> forget_cartridge(store::VsnText vsn, store::Volume::Loss loss);
    // The objects that are on tape only, and whose last recall has failed.
    std::uint64_t unreadable_count() const;
    // How many objects have left the disks. For tests.
    std::uint64_t released_count() const { return released_count_; }
    // And how often one was tried. For tests.
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
    // An object that came back is not taken away again before those who wait for it could read it.
    void keep_returned(store::Fid fid);
    Task<void> let_returned_go();
    std::uint32_t high_mark(const objects::HomeVolume& home) const;
    std::uint32_t low_mark(const objects::HomeVolume& home) const;
    Instant now() const { return stores_.parts().reactor.now(); }

    objects::Stores& stores_;
    const std::vector<TapePoolOptions> pools_;
    std::vector<objects::PoolId> pool_ids_;     // Of pools_.
    std::vector<objects::PoolId> staging_ids_;  // Likewise.
    Library library_;
    KnownMedia media_;
    bool knows_media_ = false;  // Until then the library has not been open.
    StagedObjects staged_;
    OutgoingCopies outgoing_;
    ReturningObjects returning_;

    std::map<store::Fid, Instant> changed_;  // To be looked at.
    bool settling_ = false;
    core::WaitQueue settled_;
    bool rings_ = false;
    bool ring_again_ = false;
    // Recalls are records of their objects, and need no memory here.
    std::map<store::Fid, std::shared_ptr<Waiters>> waiters_;  // For recalls.
    std::set<store::Fid> news_;      // Recalls that the library has to learn of.
    std::vector<store::Fid> ended_;  // Likewise, those that are over.
    bool has_new_disk_ = false;      // Likewise, records of cartridges.
    std::uint64_t tickets_made_ = 0;
    // How the latest recalls ended that have failed or were cancelled, and their order: who waits
    // for one may ask about it when it has ended.
    std::map<store::Fid, RecallEnd> bad_ends_;
    std::deque<store::Fid> badly_ended_;
    // Disks that objects leave now. True: there was a change since they were looked at.
    std::map<store::Slot, bool> releasing_;
    std::map<store::Fid, Instant> kept_;  // Until when.
    struct Returned {
        Instant until{};
        store::Fid fid{};
    };
    std::deque<Returned> returned_;  // Of kept_, the first that goes in front.
    // How many free blocks are wanted on disks, and until when if nobody wants them again.
    struct WantedRoom {
        std::uint64_t free_blocks = 0;
        Instant until{};
    };
    std::map<store::Slot, WantedRoom> wanted_room_;
    std::uint64_t released_count_ = 0;
    std::uint64_t release_tries_ = 0;
};

}  // namespace fopd::library

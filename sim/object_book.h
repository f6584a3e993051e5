#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/object_client.h"
#include "core/virtual_world.h"
#include "sim/booked_change.h"
#include "sim/object_bytes.h"
#include "sim/object_wish.h"

namespace fopd::sim {

// Records what clients of one server do and are told, and checks it against a model: the bytes,
// size, mode and name of each object must be explained by one order of all changes. An acknowledged
// change takes effect exactly once, as a whole, and is kept through all faults of the server. An
// unacknowledged change takes effect once, as a whole, or not at all. A buffered write that the
// server has lost never takes effect after a later change by another client: then, and only then,
// its client is told once that the write is lost. Keeps the first violation as a sentence.
class ObjectBook {
public:
    explicit ObjectBook(core::VirtualWorld& world) : world_(world) {}
    ObjectBook(const ObjectBook&) = delete;
    ObjectBook& operator=(const ObjectBook&) = delete;

    // -- events --

    std::uint32_t begin_life() { return ++lives_; }
    // The client was killed: its calls in progress may take effect or not.
    void end_life(std::uint32_t life);
    // The server was killed: buffered changes may be lost.
    void lose_memory();
    // The server starts.
    void begin_server_life() { ++server_lives_; }
    // Disks are removed at run time: a client that was away too long may not learn the outcome of
    // its calls.
    void excuse_moves() { moves_excused_ = true; }
    // From now on fops may fail because of disk faults.
    void excuse_disks() { disks_excused_ = true; }
    // A disk was written off, at rest, when no client has lost writes to repeat.
    void lose_slot(std::uint16_t slot);
    // Disks are small enough to become full.
    void excuse_space() { space_excused_ = true; }
    // Drives do not all work from now on, until they are repaired: meanwhile, objects that are on
    // tape only may be unreadable, and syncs of tapes may fail.
    void excuse_tapes() { tapes_bad_until_ = kNever; }
    // Some cartridges cannot be read until then: only these objects may be unreadable.
    void excuse_cartridges() { cartridges_bad_until_ = kNever; }
    void excuse_objects(const std::set<fop::Fid>& fids) {
        on_bad_cartridges_.insert(fids.begin(), fids.end());
    }
    // All cartridges are full: syncs of tapes may fail from now on.
    void excuse_lack_of_tape() { lacks_tape_ = true; }
    void repair_tapes();
    bool are_tapes_excused(Instant call_begun) const { return call_begun <= tapes_bad_until_; }
    bool are_cartridges_excused(Instant call_begun) const {
        return call_begun <= cartridges_bad_until_;
    }
    // All copies of these objects may be unreadable for good.
    void excuse_copies(const std::set<fop::Fid>& fids) {
        damaged_.insert(fids.begin(), fids.end());
    }
    // A disk is missing, or none is any more. While one is missing, clients are not told that
    // something that may be on it does not exist. Objects on a disk that comes back may have been
    // replaced meanwhile; they have their names again if no other object claims them.
    void excuse_missing(bool missing) {
        missing_excused_ = missing;
        older_may_return_ = older_may_return_ || missing;
    }

    // -- changes --

    struct Change : BookedChange {
        ObjectWish wish;
        fop::Fid fid{};     // The object that the change creates or changes.
        bool bound = true;  // For a change that creates an object: whether the fid is known.
    };
    // A change of bytes must fit into one fop.
    Change& begin(std::uint32_t life, ObjectWish wish);
    // The client is told that its buffered write is lost permanently.
    void tell_lost(std::uint32_t life, const client::LostWrite& lost);
    struct Ended {
        std::optional<client::Problem> problem{};
        fop::Fid fid{};            // The created object.
        std::uint64_t offset = 0;  // Where an append was put.
        bool limited = false;      // The call had a deadline.
        bool overdue = false;      // The call missed its deadline.
        // The call lasted as long as calls are repeated while the node answers "try again".
        bool repeated_long = false;
        // What are_tapes_excused() and are_cartridges_excused() returned when the call began.
        bool tapes_excused = false;
        bool cartridges_excused = false;
    };
    void end(Change& change, const Ended& ended);
    struct Sync {
        std::uint32_t life = 0;
        Moment begun = 0;
    };
    Sync begin_sync(std::uint32_t life);
    void end_sync(const Sync& sync, const Ended& ended);

    // Somebody cancels the object's recall, on which others may wait.
    void begin_cancel(fop::Fid fid) { cancelled_.insert(fid); }

    // -- looks --

    ObjectLook begin_look(std::uint32_t life) { return {.life = life, .begun = ++now_}; }
    void end_look(ObjectLook& look, const ObjectWish& wish, const Ended& ended);
    void end_read(ObjectLook& look, const ObjectWish& wish, std::span<const std::byte> bytes);
    void end_stat(ObjectLook& look, const ObjectWish& wish, const client::ObjectInfo& info);
    // The page must show all names between the two names; an empty one is no limit.
    void end_list(ObjectLook& look, const ObjectWish& wish, const client::ObjectPage& page);

    // -- for drawing the next operation --

    // An object that probably exists, and its last known name; unset if there is none.
    struct Known {
        fop::Fid fid{};
        std::string name{};
    };
    Known draw(core::Random& random) const;

    // -- at rest: no call is in progress, and no change can still take effect --

    // All fids that ever existed.
    std::vector<fop::Fid> fids() const;
    // The ranges of the object to read.
    std::vector<fop::Range> written_ranges(fop::Fid fid) const;
    // The complete contents of an object at rest.
    struct Found {
        client::ObjectInfo info{};
        std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> bytes{};
    };
    void settle(const std::vector<Found>& objects);

    void break_promise(std::string sentence);
    const std::string& broken_promise() const { return broken_promise_; }
    std::uint64_t count(std::string_view outcome) const;
    std::string summary() const;
    // Keeps a readable log of all events.
    void keep_history() { keeps_history_ = true; }
    void tell(const std::string& line);
    const std::string& history() const { return history_; }

private:
    struct Object {
        ObjectBytes bytes;
        std::string name;             // The last known name.
        std::set<std::string> names;  // All names that it may have had.
        bool gone = false;            // According to the last answer.
        std::uint16_t mode = 0;
        std::vector<const Change*> changes;  // Changes of the object that do not change bytes.
    };
    struct Name {
        fop::Fid fid{};  // Unset: the name is free.
        std::vector<const Change*> changes;
    };

    void end_done(Change& change, const Ended& ended);
    void bind(Change& change, fop::Fid fid);
    void witness(const ObjectLook& look);
    // The fault if the look shows that the object has the name, or that the name is free; empty:
    // none.
    std::string judge_name(const ObjectLook& look, const std::string& name, fop::Fid fid) const;
    std::string judge_mode(const ObjectLook& look, const Object& object, std::uint16_t mode) const;
    bool may_be_gone(fop::Fid fid) const;
    bool is_gone(const ObjectLook& look, fop::Fid fid) const;
    bool may_have_name(const std::string& name) const;
    bool may_have_again(fop::Fid fid, const std::string& name) const;
    bool may_lack_name(fop::Fid fid, const std::string& name) const;
    std::string judge_problem(const ObjectWish& wish, const Ended& ended) const;
    bool do_tapes_explain(const ObjectWish& wish, const Ended& ended) const;
    bool may_be_overtaken(const Change& change, const fop::Range& range) const;
    std::string judge_winners(const std::string& name) const;
    std::string adopt(const Found& found);
    void judge_found(ObjectLook& look, const Found& found);
    void note(std::uint64_t number, const ObjectWish& wish, const Ended& ended);
    // Breaks a promise if `wrong` is not empty.
    void must_be_right(const ObjectWish& wish, const std::string& wrong);
    // The owner of the name after the change; set if the change affects the name.
    static std::optional<fop::Fid> effect(const Change& change, const std::string& name);

    // For how many restarts the server knows which writes a crash has lost. It may refuse to repeat
    // older writes.
    static constexpr std::uint32_t kLivesKnown = 6;

    core::VirtualWorld& world_;
    Moment now_ = 0;
    std::uint32_t lives_ = 0;
    std::uint32_t server_lives_ = 0;
    bool disks_excused_ = false;
    bool space_excused_ = false;
    bool missing_excused_ = false;
    bool moves_excused_ = false;
    Instant tapes_bad_until_ = Instant::min();
    Instant cartridges_bad_until_ = Instant::min();
    std::set<fop::Fid> on_bad_cartridges_;
    bool lacks_tape_ = false;
    std::set<fop::Fid> damaged_;     // Copies of these objects on tape.
    std::set<fop::Fid> cancelled_;   // Recalls of these objects, since the last settle().
    bool older_may_return_ = false;  // Until all is at rest and no disk is missing.
    std::uint64_t changes_begun_ = 0;
    std::deque<Change> changes_;  // Since the last settle().
    std::map<fop::Fid, Object> objects_;
    std::set<fop::Fid> gone_;       // Objects that existed earlier.
    std::set<std::uint32_t> dead_;  // Lives of killed clients.
    std::map<std::string, Name> names_;
    std::map<std::string, std::uint64_t, std::less<>> outcomes_;
    std::string broken_promise_;
    bool keeps_history_ = false;
    std::string history_;
};

}  // namespace fopd::sim

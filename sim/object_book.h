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
#include "sim/object_bytes.h"
#include "sim/object_change.h"

namespace fopd::sim {

// Something that a client of objects is about to do.
struct ObjectWish {
    enum class Kind : std::uint8_t {
        kCreate,
        kPut,
        kRename,
        kRemove,
        kWrite,
        kAppend,
        kTruncate,
        kPunch,
        kSetMode,
        kLookup,
        kStat,
        kList,
        kRead,
        kSync,
    };
    Kind kind = Kind::kStat;
    fop::Fid fid{};
    std::string from{};  // The only name under which the object is meant.
    std::string name{};
    fop::Range range{};
    std::uint16_t mode = 0;
    bool no_replace = false;
    fop::Durability durability = fop::Durability::kDurable;
};
std::string describe(const ObjectWish& wish);

// What clients of one server were told about their objects, and whether it was true: each object
// has the bytes, the size, the mode and the name that one order of what they have done explains.
// What was acknowledged is done once, stays whatever befalls the server, and is seen as a whole;
// what was not is done whole, once, or not at all. A buffered write that the server loses never
// comes after what another client has done since: its client is told then that it is lost, once,
// and only then. The first untruth is kept as a sentence.
class ObjectBook {
public:
    explicit ObjectBook(core::VirtualWorld& world) : world_(world) {}
    ObjectBook(const ObjectBook&) = delete;
    ObjectBook& operator=(const ObjectBook&) = delete;

    // -- what happens --

    std::uint32_t begin_life() { return ++lives_; }
    // The client is killed: what it had under way may happen or not.
    void end_life(std::uint32_t life);
    // The server is killed: what was only buffered may be lost.
    void lose_memory();
    // The server starts.
    void begin_server_life() { ++server_lives_; }
    // Disks that are let go: who was away for too long may not hear what they had done.
    void excuse_moves() { moves_excused_ = true; }
    // From now on fops may fail because their disk does.
    void excuse_disks() { disks_excused_ = true; }
    // A disk was written off: at rest, and nobody's change is still to be written again.
    void lose_slot(std::uint16_t slot);
    // Disks are small enough to be full.
    void excuse_space() { space_excused_ = true; }
    // A disk is missing, or none any more: nobody is told that what may be on it is not there. What
    // it has when it is back may have been replaced meanwhile, and has its name again when nobody
    // else claims it.
    void excuse_missing(bool missing) {
        missing_excused_ = missing;
        older_may_return_ = older_may_return_ || missing;
    }

    // -- changes --

    struct Change : ObjectChange {
        ObjectWish wish;
        fop::Fid fid{};     // Which object it has made, or is about.
        bool bound = true;  // Of one that makes an object: whether that is known.
    };
    // Of bytes only what is one fop.
    Change& begin(std::uint32_t life, ObjectWish wish);
    // The client is told that what it has written buffered is lost for good.
    void tell_lost(std::uint32_t life, const client::LostWrite& lost);
    struct Ended {
        std::optional<client::Problem> problem{};
        fop::Fid fid{};            // Of what was made.
        std::uint64_t offset = 0;  // Of an append.
        bool limited = false;      // It had a deadline,
        bool overdue = false;      // and missed it.
    };
    void end(Change& change, const Ended& ended);
    struct Sync {
        std::uint32_t life = 0;
        Moment begun = 0;
    };
    Sync begin_sync(std::uint32_t life);
    void end_sync(const Sync& sync, const Ended& ended);

    // -- looks --

    ObjectLook begin_look(std::uint32_t life) { return {.life = life, .begun = ++now_}; }
    void end_look(ObjectLook& look, const ObjectWish& wish, const Ended& ended);
    void end_read(ObjectLook& look, const ObjectWish& wish, std::span<const std::byte> bytes);
    void end_stat(ObjectLook& look, const ObjectWish& wish, const client::ObjectInfo& info);
    // Nothing but what the page shows is between the two names; an empty one is no limit.
    void end_list(ObjectLook& look, const ObjectWish& wish, const client::ObjectPage& page);

    // -- for who draws what to do --

    // An object that is mostly there, and the name it was last said to have; unset when there is
    // none.
    struct Known {
        fop::Fid fid{};
        std::string name{};
    };
    Known draw(core::Random& random) const;

    // -- when all is at rest, and nothing can come any more --

    // Every fid there has ever been.
    std::vector<fop::Fid> fids() const;
    // The bytes to read of it.
    std::vector<fop::Range> places(fop::Fid fid) const;
    // What is there now, and all of it.
    struct Found {
        client::ObjectInfo info{};
        std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> bytes{};
    };
    void settle(const std::vector<Found>& objects);

    void break_promise(std::string sentence);
    const std::string& broken_promise() const { return broken_promise_; }
    std::uint64_t count(std::string_view outcome) const;
    std::string summary() const;
    // Writes down all that happens, for people.
    void keep_history() { keeps_history_ = true; }
    void tell(const std::string& line);
    const std::string& history() const { return history_; }

private:
    struct Object {
        ObjectBytes bytes;
        std::string name;             // That it was last said to have.
        std::set<std::string> names;  // That it may ever have had.
        bool gone = false;            // As far as anybody was told.
        std::uint16_t mode = 0;
        std::vector<const Change*> changes;  // Of what is no bytes.
    };
    struct Name {
        fop::Fid fid{};  // Unset: nobody's.
        std::vector<const Change*> changes;
    };

    void end_done(Change& change, const Ended& ended);
    void bind(Change& change, fop::Fid fid);
    void witness(const ObjectLook& look);
    // What is wrong with the name's being that object's, or nobody's, when somebody looks.
    std::string judge_name(const ObjectLook& look, const std::string& name, fop::Fid fid) const;
    std::string judge_mode(const ObjectLook& look, const Object& object, std::uint16_t mode) const;
    bool may_be_gone(fop::Fid fid) const;
    bool is_gone(const ObjectLook& look, fop::Fid fid) const;
    bool may_have_name(const std::string& name) const;
    bool may_have_again(fop::Fid fid, const std::string& name) const;
    bool may_lack_name(fop::Fid fid, const std::string& name) const;
    std::string judge_problem(const ObjectWish& wish, const Ended& ended) const;
    bool may_be_overtaken(const Change& change, const fop::Range& range) const;
    std::string judge_winners(const std::string& name) const;
    std::string adopt(const Found& found);
    void judge_found(ObjectLook& look, const Found& found);
    void note(std::uint64_t number, const ObjectWish& wish, const Ended& ended);
    // Breaks a promise when something is wrong.
    void must_be_right(const ObjectWish& wish, const std::string& wrong);
    // What the change makes of the name: set when it says anything about it.
    static std::optional<fop::Fid> effect(const Change& change, const std::string& name);

    core::VirtualWorld& world_;
    Moment now_ = 0;
    std::uint32_t lives_ = 0;
    std::uint32_t server_lives_ = 0;
    bool disks_excused_ = false;
    bool space_excused_ = false;
    bool missing_excused_ = false;
    bool moves_excused_ = false;
    bool older_may_return_ = false;  // Until all is at rest, and no disk is missing.
    std::uint64_t changes_begun_ = 0;
    std::deque<Change> changes_;  // Since the last settle().
    std::map<fop::Fid, Object> objects_;
    std::set<fop::Fid> gone_;       // Objects of before.
    std::set<std::uint32_t> dead_;  // Lives.
    std::map<std::string, Name> names_;
    std::map<std::string, std::uint64_t, std::less<>> outcomes_;
    std::string broken_promise_;
    bool keeps_history_ = false;
    std::string history_;
};

}  // namespace fopd::sim

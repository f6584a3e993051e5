#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/time.h"
#include "objects/object_name.h"
#include "store/fid.h"

namespace fopd::library {

// The objects of tape pools whose bytes are on the disks of a locality. Objects that need a copy
// are in groups, one for objects that are to be together on tape, the oldest object first. Objects
// that have all their copies are sorted by age. Pure.
class StagedObjects {
public:
    // Identifies a group: objects of a pool that are to be together on tape.
    struct GroupKey {
        objects::PoolId pool = 0;
        std::string collection = {};
        bool moves = false;  // The objects have copies on a cartridge that is being repacked.

        friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
    };
    struct Object {
        store::Fid fid{};
        GroupKey group{};
        std::uint64_t size_bytes = 0;
        Instant since{};  // When its content last changed, as far as is known.
    };
    struct Group {
        GroupKey key{};
        std::uint64_t bytes = 0;
        std::uint64_t objects = 0;
        Instant oldest{};
        bool is_urgent = false;  // A disk of the objects needs room; set by StagingDisks.
    };

    // The object needs a copy of its content. An object that waits already keeps its position in
    // the group; an object that is being copied will be copied again.
    void needs_copy(const Object& object);
    // The object has all its copies, and its bytes are on the disk.
    void has_copy(const Object& object);
    // The object has no bytes on the disk, or was removed.
    void forget(store::Fid fid);
    // The object cannot be copied as it is; it is in no group until it changes.
    void give_up(store::Fid fid);

    // -- copying --

    // The groups by key, with their waiting objects. Objects that are being copied are not
    // included.
    std::vector<Group> groups() const;
    // Takes the oldest objects of a group to be copied, within the limits; a single object may
    // exceed `bytes`.
    struct Limits {
        std::uint64_t bytes = 0;
        std::size_t objects = 0;
        // The largest size of an object: larger objects keep waiting.
        std::uint64_t object_bytes = std::numeric_limits<std::uint64_t>::max();
    };
    std::vector<Object> take(const GroupKey& group, const Limits& limits);
    // Whether an object of the group waits and is not being copied.
    bool has_waiting(const GroupKey& group) const { return queues_.contains(group); }
    // Gives up the waiting objects of a group that are larger than `bytes`.
    std::vector<store::Fid> give_up_larger(const GroupKey& group, std::uint64_t bytes);
    // The objects of a pool that have no copy. They wait, are being copied, or were given up.
    struct Uncopied {
        objects::PoolId pool = 0;
        std::uint64_t bytes = 0;
        std::uint64_t objects = 0;
        Instant oldest{};
    };
    // Has an entry for each pool that has such objects.
    std::vector<Uncopied> uncopied() const;
    // The copying of a taken object has ended. If it still needs a copy, it waits again.
    void put_back(store::Fid fid);
    // The number of objects that wait or are being copied.
    std::uint64_t waiting_count() const { return waiting_.size(); }
    // Whether the object waits, is being copied, or was given up.
    bool is_waiting(store::Fid fid) const { return waiting_.contains(fid); }
    // Whether the object was given up, until it changes.
    bool is_given_up(store::Fid fid) const;
    // The group of an object that waits, is being copied, or was given up; null for others.
    const GroupKey* group_of(store::Fid fid) const;
    // The objects of a pool that wait, are being copied, or were given up, without those that a
    // repack moves.
    std::vector<store::Fid> waiting_of(objects::PoolId pool) const;

    // -- leaving the disk --

    // Of the objects that have all their copies: the one that has been on its disk for longest,
    // after the given one.
    struct Age {
        Instant since{};
        store::Fid fid{};

        friend auto operator<=>(const Age&, const Age&) = default;
    };
    std::optional<Age> oldest_with_copy(const std::optional<Age>& after, store::Slot slot) const;

private:
    enum class State : std::uint8_t { kWaits, kTaken, kTakenAndChanged, kGivenUp };
    struct Waiting {
        Object object;
        State state = State::kWaits;
    };
    struct Queue {
        std::set<Age> order;
        std::uint64_t bytes = 0;

        void add(const Object& object);
        void remove(const Object& object);
    };

    void enqueue(const Object& object);
    void dequeue(const Object& object);
    void set_aside(const Object& object);
    void take_back(const Object& object);
    void drop_copy(store::Fid fid);

    std::map<store::Fid, Waiting> waiting_;
    std::map<GroupKey, Queue> queues_;        // The objects in state kWaits.
    std::map<objects::PoolId, Queue> aside_;  // The objects in other states.
    std::map<store::Fid, Instant> with_copy_;
    std::set<std::tuple<store::Slot, Age>> by_age_;
};

}  // namespace fopd::library

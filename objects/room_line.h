#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/time.h"
#include "objects/disk_use.h"
#include "store/fid.h"
#include "store/object.h"

namespace fopd::objects {

// Those that wait for room on a disk, in the order in which they came: uploads that could not
// begin, refused writes, and a recall.
//
// No request is kept here: one without room is answered at once, and its client sends it again
// after a pause. The line remembers that it waits, as long as it comes again within kStays and
// before its deadline. A place that has waited for kGrace has *force*: requests that came later
// take only what leaves the room that the place wants. So a stream of small requests, each of which
// fits into the room that becomes free, does not take it before there is enough for a large one.
// Until then small requests may pass, so that one that waits for a moment stops nobody.
//
// The first place with force has its turn. If nothing has made progress in its favour for kTurn,
// the place goes to the end of the line and has no force for kYields: it may want what pinned
// objects or a broken library keep, and others would wait with it. Lives on one reactor.
class RoomLine {
public:
    static constexpr std::size_t kPlacesMax = 256;
    // Clients pause for half a second at most.
    static constexpr Duration kStays = 5s;
    // Recalls look for room after 30 seconds at most. One that has found it waits for a drive, for
    // three minutes at most, and until the tape is at its object.
    static constexpr Duration kRecallStays = 6min;
    static constexpr Duration kGrace = 10s;
    static constexpr Duration kTurn = 10min;
    static constexpr Duration kYields = 1h;

    // By what a request is recognised when it comes again.
    struct Key {
        store::Fid fid{};  // The object or upload; none: an upload that could not begin.
        // Of an upload that could not begin. A client has one place for uploads of a size.
        store::ClientId client{};
        std::uint64_t blocks = 0;
        bool is_recall = false;

        friend bool operator==(const Key&, const Key&) = default;
    };
    // A request that has found no room.
    struct Waiting {
        Key key{};
        // Null: a recall, of which one may wait. An owner may have as many places as are left.
        const DiskUse::Owner* owner = nullptr;
        std::uint64_t blocks = 0;   // The room that it wants.
        Instant deadline = kNever;  // The place is gone then.
    };
    // Gives it a place at the end of the line, or lets it keep its place. Does nothing if there are
    // no places left.
    void wait(const Waiting& waiting, Instant now);
    // Changes the room that it wants, and lets it stay. Less is progress. Does nothing if it has no
    // place.
    void renew(const Key& key, std::uint64_t blocks, Instant now);
    // It has got room, or wants none any more.
    void leave(const Key& key);
    // Removes all places for the object or upload.
    void forget(store::Fid fid);

    // The room that places with force want which a request must leave: those before its own, or all
    // if it has none. A recall leaves none for another recall.
    std::uint64_t wanted_before(const Key& key, Instant now);
    // Likewise for an upload that has kept room since `since`: those that had force before that.
    // An upload that has begun earlier need not stop for them in the middle.
    std::uint64_t wanted_since(Instant since, Instant now);

    // Notes how much room there is beyond what uploads need; negative: they need more. More than
    // ever in a turn is progress.
    void observe(std::int64_t available_blocks, Instant now);
    // Notes progress: an upload of known size that keeps room has got blocks, so it will end.
    void note_progress(Instant now) { progress_at_ = now; }

    bool is_empty() const { return places_.empty(); }
    std::size_t count(Instant now) {
        let_go(now);
        return places_.size();
    }

private:
    static constexpr std::int64_t kNothingSeen = std::numeric_limits<std::int64_t>::min();

    struct Place {
        Waiting waiting{};
        Instant made_at{};
        Instant until{};
        Instant yields_until{};

        Instant has_force_from() const { return after(made_at, kGrace); }
        bool has_force(Instant now) const { return now >= has_force_from() && now >= yields_until; }
    };

    static Duration stay_of(const Key& key) { return key.is_recall ? kRecallStays : kStays; }
    Place* find(const Key& key);
    // Whether there is a place left for this owner.
    bool has_place_for(const Waiting& waiting) const;
    void let_go(Instant now);

    std::vector<Place> places_;  // The oldest first.
    // Of the turn of the first place with force.
    std::optional<Key> in_turn_{};
    std::int64_t most_available_blocks_ = kNothingSeen;
    Instant progress_at_{};
};

}  // namespace fopd::objects

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
// begin, refused writes, and recalls.
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
// objects or a broken library keep, and others would wait with it. Progress is room that has become
// free, the bytes of a recall that has its turn, and for kSendingMax what uploads of known size
// send, if they are not too slow. A single block is none, so a client that sends a little now and
// then holds no turn.
//
// Of the recalls only the first one with force counts, for other recalls and for everybody else: a
// disk may have thousands of them, and all others would wait for the room of all. The others keep
// their order. When a recall loses its turn for lack of room, those that want as much have no force
// either for kYields, so smaller ones do not wait for each of them. Lives on one reactor.
class RoomLine {
public:
    static constexpr std::size_t kPlacesMax = 256;
    // Recalls have so many places of their own. Those that have none pass on what the others leave,
    // and get a place in the order in which they look for room.
    static constexpr std::size_t kRecallPlacesMax = 16;
    // Clients pause for half a second at most.
    static constexpr Duration kStays = 5s;
    // Recalls look for room after 30 seconds at most. One that has found it waits for a drive, for
    // three minutes at most, and until the tape is at its object.
    static constexpr Duration kRecallStays = 6min;
    static constexpr Duration kGrace = 10s;
    static constexpr Duration kTurn = 10min;
    static constexpr Duration kYields = 1h;
    // A turn goes on while uploads of known size send this many blocks or more in a second, all of
    // them together. It may be long until they have ended, so this holds until there has been no
    // more room for kSendingMax.
    static constexpr std::int64_t kSentPerSecondMin = 256;
    static constexpr Duration kSendingMax = 6h;
    // More room is progress if it is this part of what the place wants.
    static constexpr std::uint64_t kProgressPart = 64;

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
        // Null: a recall. An owner may have as many places as are left.
        const DiskUse::Owner* owner = nullptr;
        std::uint64_t blocks = 0;   // The room that it wants.
        Instant deadline = kNever;  // The place is gone then.
    };
    // Gives it a place at the end of the line, or lets it keep its place. Does nothing if there are
    // no places left.
    void wait(const Waiting& waiting, Instant now);
    // Room is reserved for it, of which it wants this much yet; lets it stay. Less is progress.
    // Does nothing if it has no place.
    void renew(const Key& key, std::uint64_t blocks, Instant now);
    // It has got room, or wants none any more.
    void leave(const Key& key);
    // Removes all places for the object or upload.
    void forget(store::Fid fid);

    // The room that places with force want which a request must leave: those before its own, or all
    // if it has none; of recalls the first one. A recall leaves room for the recall of
    // first_recall_before(), which is not part of this.
    std::uint64_t wanted_before(const Key& key, Instant now);
    // The recall for which a recall must leave the room that it wants, unless room is reserved for
    // it.
    std::optional<Waiting> first_recall_before(const Key& key, Instant now);
    // Likewise for an upload that has kept room since `since`: those that had force before that.
    // An upload that has begun earlier need not stop for them in the middle.
    std::uint64_t wanted_since(Instant since, Instant now);

    // Notes how much room there is beyond what uploads need; negative: they need more. More than
    // ever in a turn is progress.
    void observe(std::int64_t available_blocks, Instant now);
    // An upload of known size that keeps room has got blocks, so it will end.
    void note_sent(std::uint64_t blocks, Instant now);

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
        bool has_room = false;  // Room is reserved for it.

        Instant has_force_from() const { return after(made_at, kGrace); }
    };

    static Duration stay_of(const Key& key) { return key.is_recall ? kRecallStays : kStays; }
    Place* find(const Key& key);
    bool has_force(const Place& place, Instant now) const;
    // The room that places with force want, from the first one to that at which `is_end`.
    template <typename IsEnd>
    std::uint64_t wanted(std::size_t recalls_max, Instant now, IsEnd is_end);
    // Whether there is a place left for this owner, or for a recall.
    bool has_place_for(const Waiting& waiting) const;
    // Whether a recall has lost its turn that wanted no more room.
    bool is_futile(const Waiting& waiting, Instant now) const;
    // Takes the place of a recall that has no force although it has waited.
    bool take_futile_place(const Waiting& waiting, Instant now);
    void let_go(Instant now);
    void end_turn(std::vector<Place>::iterator first, Instant now);

    std::vector<Place> places_;  // The oldest first.
    // Of the turn of the first place with force.
    std::optional<Key> in_turn_{};
    std::int64_t most_available_blocks_ = kNothingSeen;
    Instant progress_at_{};
    Instant grown_at_{};             // When there was more room.
    std::uint64_t sent_blocks_ = 0;  // Since progress_at_, by uploads of known size.
    // The room that a recall has wanted which has lost its turn, and until when those that want as
    // much have no force.
    std::uint64_t futile_blocks_ = 0;
    Instant futile_until_{};
};

}  // namespace fopd::objects

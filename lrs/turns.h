#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/intrusive_list.h"
#include "core/random.h"
#include "lrs/class_figures.h"
#include "lrs/request.h"

namespace fopd::lrs {

// What those of a queue have in common.
struct QueueKey {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend bool operator==(const QueueKey&, const QueueKey&) = default;
};

// Requests in queues, one for each key, that take turns: the queue whose turn it is gives out up to
// a quantum of requests and goes behind the others. One that was empty comes in last.
//
// Queues may be in groups: then groups take turns, and in each turn of a group it is the turn of
// its next queue. So a group of a thousand queues has as much as a group of one.
//
// In the order of arrival, a turn also takes what arrives during it. By place, those that wait when
// the turn begins, the oldest quantum of them, are given out in the order of their places, and of
// their arrival where these are the same: so that nothing waits for what came later but within a
// quantum.
//
// Pushing and popping take a time that does not depend on how many there are, but for the sorting
// of a turn. Keeps memory for each queue that was ever there at the same time as others.
//
// It leaves it to others to count in a queue's tally.
class Turns {
public:
    // Where a request is; greater is behind.
    using Place = std::array<std::uint64_t, 3>;
    struct Rule {
        std::uint32_t quantum;                             // At least 1.
        Place (*place)(const Request& request) = nullptr;  // Null: in the order of arrival.
        // Makes it unknown which keys are looked up slowly together.
        std::uint64_t seed = 0;
        // Queues it remembers while they are empty, with their tallies: those used last.
        std::size_t idle_max = 0;
    };

    explicit Turns(const Rule& rule);

    // For turns that begin from now on. Requires: in the order of arrival.
    void set_quantum(std::uint32_t quantum) { rule_.quantum = quantum; }

    bool empty() const { return ring_.empty(); }
    // What its queue is called, for whoever pushes to say: empty for a new one. All queues without
    // a group are of one. Requires: requests of one key are of one group.
    std::string& push(Request& request, const QueueKey& key, const QueueKey* group = nullptr);
    // Null: there is none.
    Request* pop();
    void remove(Request& request);

    // Of the queue of a request that waits, or was the last to be popped. Requires: there is room
    // for idle ones.
    static ClassTally& tally_of(const Request& request) {
        return static_cast<Queue*>(request.PolicyPlace::queue)->tally;
    }
    // Shows each queue that it remembers. Requires: in the order of arrival.
    struct Shown {
        const std::string& name;
        std::uint64_t queued;
        const Request* oldest;  // Null: none waits.
        ClassTally& tally;
    };
    template <typename Visit>
    void for_each(Visit visit) {
        const auto show = [&visit](Queue& queue) {
            const Request* oldest = nullptr;
            if (queue.queued > 0) oldest = &static_cast<Request&>(queue.arrived.front());
            visit(Shown{.name = queue.name,
                        .queued = queue.queued,
                        .oldest = oldest,
                        .tally = queue.tally});
        };
        ring_.for_each([&show](Group& group) { group.ring.for_each(show); });
        idle_.for_each(show);
    }

private:
    struct Group;
    // In its group's ring while it has requests, else in idle_ or free_.
    struct Queue : core::ListNode {
        QueueKey key;
        Group* group = nullptr;  // Null: it is free.
        std::string name;
        Queue* next_alike = nullptr;               // In the same bucket.
        std::uint32_t left = 0;                    // Of its turn; 0: it has none.
        core::IntrusiveList<PolicyPlace> turn;     // By place; what is left of its turn.
        core::IntrusiveList<PolicyPlace> arrived;  // In the order of arrival.
        std::uint64_t queued = 0;
        ClassTally tally;
    };
    // In ring_ while one of its queues has requests. Forgotten with the last of its queues, unless
    // it is alone_.
    struct Group : core::ListNode {
        core::IntrusiveList<Queue> ring;  // The first has its turn, or is about to.
        std::size_t count = 0;            // Of its queues, those that are empty, too.
        QueueKey key;
    };
    struct HashOfGroup {
        std::uint64_t seed;
        std::size_t operator()(const QueueKey& key) const {
            return core::mix(core::mix(seed, key.high), key.low);
        }
    };
    struct Placed {
        Place place;
        std::size_t number;  // By arrival.
        Request* request;
    };

    Queue*& bucket_of(const QueueKey& key);
    Queue& find_or_make(const QueueKey& key, const QueueKey* group);
    Group& group_of(const QueueKey* key);
    void enter_ring(Queue& queue);
    void leave_ring(Queue& queue);
    void rest(Queue& queue);
    void forget(Queue& queue);
    void grow();
    static bool is_before(const Placed& one, const Placed& other);
    bool by_place() const { return rule_.place != nullptr; }
    void begin_turn(Queue& queue);
    void end_turn(Queue& queue);

    Rule rule_;
    std::deque<Queue> queues_;
    core::IntrusiveList<Queue> free_;
    core::IntrusiveList<Group> ring_;  // The first has its turn, or is about to.
    core::IntrusiveList<Queue> idle_;  // Empty and remembered, the longest first.
    std::size_t idle_count_ = 0;
    std::size_t count_ = 0;        // Of queues in a ring, or idle.
    std::vector<Queue*> buckets_;  // A power of two.
    std::vector<Placed> sorting_;  // For the time of one sorting.
    Group alone_;                  // Of queues without a group.
    std::unordered_map<QueueKey, Group, HashOfGroup> groups_;
};

}  // namespace fopd::lrs

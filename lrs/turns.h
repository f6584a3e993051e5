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

// Identifies a queue.
struct QueueKey {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend bool operator==(const QueueKey&, const QueueKey&) = default;
};

// Requests in queues, one per key, that take turns: the queue whose turn it is delivers up to a
// quantum of requests and then goes to the end of the ring. A queue that was empty enters at the
// end.
//
// Queues may form groups: then groups take turns, and each turn of a group goes to its next queue.
// So a group of a thousand queues gets as much as a group of one.
//
// In the order of arrival, a turn includes requests that arrive during it. With Rule::sort_key, the
// requests that wait when the turn begins, at most the oldest quantum, are sorted by it, and by
// arrival if it is the same: so a request is overtaken by later ones only within a quantum.
//
// The time of a push or pop does not depend on the number of queues and requests, except for the
// sort at the start of a turn. Uses memory for the largest number of queues that existed at a time.
//
// The caller updates a queue's tally.
class Turns {
public:
    // The sort key of a request; lower ones come first.
    using SortKey = std::array<std::uint64_t, 3>;
    struct Rule {
        std::uint32_t quantum;                                  // At least 1.
        SortKey (*sort_key)(const Request& request) = nullptr;  // Null: in the order of arrival.
        // Makes hash collisions of keys unpredictable.
        std::uint64_t seed = 0;
        // The number of empty queues to keep, with their tallies: the most recently used ones.
        std::size_t idle_max = 0;
    };

    explicit Turns(const Rule& rule);

    // Changes the quantum of turns that begin later. REQUIRES: the rule's order is arrival.
    void set_quantum(std::uint32_t quantum) { rule_.quantum = quantum; }

    bool empty() const { return ring_.empty(); }
    // Returns the queue's name, which is empty for a new queue; the caller sets it. Queues without
    // a group form one group together. REQUIRES: all requests of a key have the same group.
    std::string& push(Request& request, const QueueKey& key, const QueueKey* group = nullptr);
    // Null if nothing waits.
    Request* pop();
    void remove(Request& request);

    // The tally of the queue of a request that waits, or that was popped last. REQUIRES: idle_max >
    // 0.
    static ClassTally& tally_of(const Request& request) {
        return static_cast<Queue*>(request.PolicyPlace::queue)->tally;
    }
    // The name of that queue. REQUIRES: idle_max > 0.
    static std::string_view name_of(const Request& request) {
        return static_cast<const Queue*>(request.PolicyPlace::queue)->name;
    }
    // Shows all queues, also the empty ones that are kept. REQUIRES: the order is that of arrival.
    struct Shown {
        const std::string& name;
        std::uint64_t queued;
        const Request* oldest;  // Null: no request waits.
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
    // In its group's ring while it has requests, otherwise in idle_ or free_.
    struct Queue : core::ListNode {
        QueueKey key;
        Group* group = nullptr;  // Null: the queue is unused.
        std::string name;
        Queue* next_alike = nullptr;  // Next in the same hash bucket.
        std::uint32_t left = 0;  // How many requests are left of its turn; 0: it is not its turn.
        core::IntrusiveList<PolicyPlace> turn;     // The rest of its turn, sorted.
        core::IntrusiveList<PolicyPlace> arrived;  // In the order of arrival.
        std::uint64_t queued = 0;
        ClassTally tally;
    };
    // In ring_ while one of its queues has requests. Erased with its last queue, except alone_.
    struct Group : core::ListNode {
        core::IntrusiveList<Queue> ring;  // It is the turn of the first, or will be next.
        std::size_t count = 0;            // The number of its queues, including empty ones.
        QueueKey key;
    };
    struct HashOfGroup {
        std::uint64_t seed;
        std::size_t operator()(const QueueKey& key) const {
            return core::mix(core::mix(seed, key.high), key.low);
        }
    };
    struct Keyed {
        SortKey key;
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
    static bool is_before(const Keyed& one, const Keyed& other);
    bool is_sorted() const { return rule_.sort_key != nullptr; }
    void begin_turn(Queue& queue);
    void end_turn(Queue& queue);

    Rule rule_;
    std::deque<Queue> queues_;
    core::IntrusiveList<Queue> free_;
    core::IntrusiveList<Group> ring_;  // It is the turn of the first, or will be next.
    core::IntrusiveList<Queue> idle_;  // Empty queues that are kept, the longest idle first.
    std::size_t idle_count_ = 0;
    std::size_t count_ = 0;        // Queues in a ring or in idle_.
    std::vector<Queue*> buckets_;  // The size is a power of two.
    std::vector<Keyed> sorting_;   // Used within begin_turn() only.
    Group alone_;                  // The group of queues without a group.
    std::unordered_map<QueueKey, Group, HashOfGroup> groups_;
};

}  // namespace fopd::lrs

#include "lrs/turns.h"

#include <algorithm>

namespace fopd::lrs {

namespace {

constexpr std::size_t kFirstBuckets = 16;

}  // namespace

Turns::Turns(const Rule& rule)
    : rule_(rule), buckets_(kFirstBuckets), groups_(0, HashOfGroup{rule.seed}) {
    ENSURE(rule_.quantum > 0);
    if (is_sorted()) sorting_.reserve(rule_.quantum);
}

std::string& Turns::push(Request& request, const QueueKey& key, const QueueKey* group) {
    Queue& queue = find_or_make(key, group);
    request.PolicyPlace::queue = &queue;
    queue.arrived.push_back(request);
    if (++queue.queued > 1) return queue.name;
    if (queue.linked()) --idle_count_;
    queue.unlink();
    queue.left = 0;
    enter_ring(queue);
    return queue.name;
}

Request* Turns::pop() {
    if (ring_.empty()) return nullptr;
    Queue& queue = ring_.front().ring.front();
    if (queue.left == 0) begin_turn(queue);
    PolicyPlace* const next = is_sorted() ? queue.turn.pop_front() : queue.arrived.pop_front();
    --queue.left;
    if (--queue.queued == 0 || queue.left == 0 || (is_sorted() && queue.turn.empty()))
        end_turn(queue);
    return static_cast<Request*>(next);
}

void Turns::remove(Request& request) {
    auto& queue = *static_cast<Queue*>(request.PolicyPlace::queue);
    request.PolicyPlace::unlink();
    --queue.queued;
    const bool has_turn = queue.left > 0;
    if (has_turn && (queue.queued == 0 || (is_sorted() && queue.turn.empty()))) {
        end_turn(queue);
    } else if (queue.queued == 0) {
        leave_ring(queue);
        rest(queue);
    }
}

void Turns::begin_turn(Queue& queue) {
    queue.left = rule_.quantum;
    if (!is_sorted()) return;
    sorting_.clear();
    while (!queue.arrived.empty() && sorting_.size() < rule_.quantum) {
        auto& request = static_cast<Request&>(*queue.arrived.pop_front());
        sorting_.push_back(
            {.key = rule_.sort_key(request), .number = sorting_.size(), .request = &request});
    }
    std::ranges::sort(sorting_, &Turns::is_before);
    for (const Keyed& each : sorting_) queue.turn.push_back(*each.request);
}

// Written by hand: comparing the arrays makes a whole turn a fifth slower.
bool Turns::is_before(const Keyed& one, const Keyed& other) {
    for (std::size_t i = 0; i < one.key.size(); ++i) {
        if (one.key[i] != other.key[i]) return one.key[i] < other.key[i];
    }
    return one.number < other.number;
}

// Moves the group to the end of the ring, and the queue to the end of its group.
void Turns::end_turn(Queue& queue) {
    queue.left = 0;
    leave_ring(queue);
    if (queue.group->linked()) {
        queue.group->unlink();
        ring_.push_back(*queue.group);
    }
    if (queue.queued > 0) {
        enter_ring(queue);
    } else {
        rest(queue);
    }
}

// The queue becomes the last of its group; a group without other queues becomes the last of the
// ring.
void Turns::enter_ring(Queue& queue) {
    queue.group->ring.push_back(queue);
    if (!queue.group->linked()) ring_.push_back(*queue.group);
}

void Turns::leave_ring(Queue& queue) {
    queue.unlink();
    if (queue.group->ring.empty()) queue.group->unlink();
}

// -- hash table of the queues --

Turns::Queue*& Turns::bucket_of(const QueueKey& key) {
    const std::uint64_t hash = core::mix(core::mix(rule_.seed, key.high), key.low);
    return buckets_[hash & (buckets_.size() - 1)];
}

Turns::Queue& Turns::find_or_make(const QueueKey& key, const QueueKey* group) {
    for (Queue* queue = bucket_of(key); queue != nullptr; queue = queue->next_alike) {
        if (queue->key == key) return *queue;
    }
    if (count_ == buckets_.size()) grow();
    Queue* const free = free_.pop_front();
    Queue& queue = free != nullptr ? *free : queues_.emplace_back();
    queue.key = key;
    queue.group = &group_of(group);
    ++queue.group->count;
    queue.name.clear();
    queue.tally = {};
    Queue*& bucket = bucket_of(key);
    queue.next_alike = bucket;
    bucket = &queue;
    ++count_;
    return queue;
}

Turns::Group& Turns::group_of(const QueueKey* key) {
    if (key == nullptr) return alone_;
    Group& group = groups_[*key];
    group.key = *key;
    return group;
}

// REQUIRES: the queue is in no list.
void Turns::rest(Queue& queue) {
    idle_.push_back(queue);
    if (++idle_count_ <= rule_.idle_max) return;
    --idle_count_;
    forget(*idle_.pop_front());
}

// REQUIRES: the queue is in no list.
void Turns::forget(Queue& queue) {
    Queue** link = &bucket_of(queue.key);
    while (*link != &queue) link = &(*link)->next_alike;
    *link = queue.next_alike;
    if (--queue.group->count == 0 && queue.group != &alone_) groups_.erase(queue.group->key);
    queue.group = nullptr;
    free_.push_back(queue);
    --count_;
}

void Turns::grow() {
    buckets_.assign(buckets_.size() * 2, nullptr);
    const auto enter = [this](Queue& queue) {
        Queue*& bucket = bucket_of(queue.key);
        queue.next_alike = bucket;
        bucket = &queue;
    };
    ring_.for_each([&enter](Group& group) { group.ring.for_each(enter); });
    idle_.for_each(enter);
}

}  // namespace fopd::lrs

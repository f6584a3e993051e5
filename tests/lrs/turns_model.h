#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "lrs/turns.h"

namespace fopd::lrs::testing {

// What Turns is to do, in the plainest way: one vector of queues in the order of their last turns.
// The first queue of the first group has the turn; then its group goes behind the others.
class TurnsModel {
public:
    TurnsModel(std::size_t quantum, Turns::SortKey (*sort_key)(const Request& request))
        : quantum_(quantum), sort_key_(sort_key) {}

    void push(Request& request, const QueueKey& key, const QueueKey* group_key = nullptr) {
        const QueueKey wanted = group_key == nullptr ? QueueKey{} : *group_key;
        auto group = std::ranges::find(groups_, wanted, &Group::key);
        if (group == groups_.end()) group = groups_.insert(groups_.end(), Group{.key = wanted});
        auto& queues = group->queues;
        auto queue = std::ranges::find(queues, key, &Queue::key);
        if (queue == queues.end()) queue = queues.insert(queues.end(), Queue{.key = key});
        queue->arrived.push_back(&request);
    }

    Request* pop() {
        if (groups_.empty()) return nullptr;
        Queue& queue = groups_.front().queues.front();
        if (sort_key_ != nullptr && turn_.empty()) {
            const std::size_t count = std::min(quantum_, queue.arrived.size());
            const auto end = queue.arrived.begin() + static_cast<std::ptrdiff_t>(count);
            const auto by_key = [this](const Request* one) { return sort_key_(*one); };
            turn_.assign(queue.arrived.begin(), end);
            queue.arrived.erase(queue.arrived.begin(), end);
            for (auto each = turn_.begin(); each != turn_.end(); ++each) {
                std::rotate(
                    std::ranges::upper_bound(turn_.begin(), each, sort_key_(**each), {}, by_key),
                    each, each + 1);
            }
        }
        std::vector<Request*>& from = sort_key_ == nullptr ? queue.arrived : turn_;
        Request* const request = from.front();
        from.erase(from.begin());
        ++taken_;
        end_turn_if(sort_key_ == nullptr ? taken_ == quantum_ : turn_.empty());
        return request;
    }

    void remove(Request& request) {
        if (std::erase(turn_, &request) > 0) {
            end_turn_if(turn_.empty());
            return;
        }
        for (auto group = groups_.begin(); group != groups_.end(); ++group) {
            for (auto queue = group->queues.begin(); queue != group->queues.end(); ++queue) {
                if (std::erase(queue->arrived, &request) == 0) continue;
                if (taken_ > 0 && queue == groups_.front().queues.begin()) {
                    end_turn_if(false);
                } else if (queue->arrived.empty()) {
                    group->queues.erase(queue);
                    if (group->queues.empty()) groups_.erase(group);
                }
                return;
            }
        }
    }

private:
    struct Queue {
        QueueKey key;
        std::vector<Request*> arrived{};
    };
    struct Group {
        QueueKey key;
        std::vector<Queue> queues{};
    };

    void end_turn_if(bool is_over) {
        Group group = std::move(groups_.front());
        Queue queue = std::move(group.queues.front());
        const bool is_done = queue.arrived.empty() && turn_.empty();
        if (!is_over && !is_done) {
            group.queues.front() = std::move(queue);
            groups_.front() = std::move(group);
            return;
        }
        taken_ = 0;
        groups_.erase(groups_.begin());
        group.queues.erase(group.queues.begin());
        if (!is_done) group.queues.push_back(std::move(queue));
        if (!group.queues.empty()) groups_.push_back(std::move(group));
    }

    const std::size_t quantum_;
    Turns::SortKey (*const sort_key_)(const Request& request);
    std::vector<Group> groups_;
    std::vector<Request*> turn_;  // The turn of the first queue, sorted.
    std::size_t taken_ = 0;       // In the turn of the first queue.
};

}  // namespace fopd::lrs::testing

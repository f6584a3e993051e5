#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "lrs/turns.h"

namespace fopd::lrs::testing {

// What Turns is to do, in the plainest way: one vector of queues, the first has the turn.
class TurnsModel {
public:
    TurnsModel(std::size_t quantum, Turns::Place (*place)(const Request& request))
        : quantum_(quantum), place_(place) {}

    void push(Request& request, const QueueKey& key) {
        auto queue = std::ranges::find(queues_, key, &Queue::key);
        if (queue == queues_.end()) queue = queues_.insert(queues_.end(), Queue{.key = key});
        queue->arrived.push_back(&request);
    }

    Request* pop() {
        if (queues_.empty()) return nullptr;
        Queue& queue = queues_.front();
        if (place_ != nullptr && turn_.empty()) {
            const std::size_t count = std::min(quantum_, queue.arrived.size());
            const auto end = queue.arrived.begin() + static_cast<std::ptrdiff_t>(count);
            const auto by_place = [this](const Request* one) { return place_(*one); };
            turn_.assign(queue.arrived.begin(), end);
            queue.arrived.erase(queue.arrived.begin(), end);
            for (auto each = turn_.begin(); each != turn_.end(); ++each) {
                std::rotate(
                    std::ranges::upper_bound(turn_.begin(), each, place_(**each), {}, by_place),
                    each, each + 1);
            }
        }
        std::vector<Request*>& from = place_ == nullptr ? queue.arrived : turn_;
        Request* const request = from.front();
        from.erase(from.begin());
        ++taken_;
        end_turn_if(place_ == nullptr ? taken_ == quantum_ : turn_.empty());
        return request;
    }

    void remove(Request& request) {
        const bool was_in_turn = std::erase(turn_, &request) > 0;
        for (auto queue = queues_.begin(); queue != queues_.end(); ++queue) {
            if (std::erase(queue->arrived, &request) == 0) continue;
            const bool has_turn = queue == queues_.begin();
            if (!queue->arrived.empty() || (has_turn && !turn_.empty())) return;
            if (has_turn) taken_ = 0;
            queues_.erase(queue);
            return;
        }
        end_turn_if(was_in_turn && turn_.empty());
    }

private:
    struct Queue {
        QueueKey key;
        std::vector<Request*> arrived{};
    };

    void end_turn_if(bool is_over) {
        const bool is_empty = queues_.front().arrived.empty() && turn_.empty();
        if (!is_over && !is_empty) return;
        taken_ = 0;
        Queue queue = std::move(queues_.front());
        queues_.erase(queues_.begin());
        if (!is_empty) queues_.push_back(std::move(queue));
    }

    const std::size_t quantum_;
    Turns::Place (*const place_)(const Request& request);
    std::vector<Queue> queues_;
    std::vector<Request*> turn_;  // Of the first queue, by place.
    std::size_t taken_ = 0;       // In the turn of the first queue.
};

}  // namespace fopd::lrs::testing

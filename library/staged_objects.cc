#include "library/staged_objects.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::library {

void StagedObjects::Queue::add(const Object& object) {
    order.insert({.since = object.since, .fid = object.fid});
    bytes += object.size_bytes;
}

void StagedObjects::Queue::remove(const Object& object) {
    const auto erased = order.erase({.since = object.since, .fid = object.fid});
    ENSURE(erased == 1);
    bytes -= object.size_bytes;
}

void StagedObjects::enqueue(const Object& object) {
    queues_[object.group].add(object);
}

void StagedObjects::dequeue(const Object& object) {
    const auto queue = queues_.find(object.group);
    ENSURE(queue != queues_.end());
    queue->second.remove(object);
    if (queue->second.order.empty()) queues_.erase(queue);
}

void StagedObjects::set_aside(const Object& object) {
    aside_[object.group.pool].add(object);
}

void StagedObjects::take_back(const Object& object) {
    const auto aside = aside_.find(object.group.pool);
    ENSURE(aside != aside_.end());
    aside->second.remove(object);
    if (aside->second.order.empty()) aside_.erase(aside);
}

void StagedObjects::drop_copy(store::Fid fid) {
    const auto found = with_copy_.find(fid);
    if (found == with_copy_.end()) return;
    by_age_.erase({fid.slot(), {.since = found->second, .fid = fid}});
    with_copy_.erase(found);
}

void StagedObjects::needs_copy(const Object& object) {
    drop_copy(object.fid);
    const auto [at, is_new] = waiting_.try_emplace(object.fid, Waiting{.object = object});
    Waiting& waiting = at->second;
    const bool was_queued = !is_new && waiting.state == State::kWaits;
    if (was_queued) dequeue(waiting.object);
    if (!is_new && !was_queued) take_back(waiting.object);
    const Instant since =
        is_new || waiting.state == State::kGivenUp ? object.since : waiting.object.since;
    waiting.object = object;
    waiting.object.since = since;
    if (waiting.state == State::kTaken || waiting.state == State::kTakenAndChanged) {
        waiting.state = State::kTakenAndChanged;
        set_aside(waiting.object);
        return;
    }
    waiting.state = State::kWaits;
    enqueue(waiting.object);
}

void StagedObjects::has_copy(const Object& object) {
    forget(object.fid);
    with_copy_[object.fid] = object.since;
    by_age_.insert({object.fid.slot(), {.since = object.since, .fid = object.fid}});
}

void StagedObjects::forget(store::Fid fid) {
    drop_copy(fid);
    const auto found = waiting_.find(fid);
    if (found == waiting_.end()) return;
    if (found->second.state == State::kWaits) {
        dequeue(found->second.object);
    } else {
        take_back(found->second.object);
    }
    waiting_.erase(found);
}

void StagedObjects::give_up(store::Fid fid) {
    const auto found = waiting_.find(fid);
    // An object that has changed since it was taken has a new content, which is not given up.
    if (found == waiting_.end() || found->second.state == State::kTakenAndChanged) return;
    if (found->second.state == State::kWaits) {
        dequeue(found->second.object);
        set_aside(found->second.object);
    }
    found->second.state = State::kGivenUp;
}

std::vector<StagedObjects::Group> StagedObjects::groups() const {
    std::vector<Group> groups;
    for (const auto& [key, queue] : queues_) {
        groups.push_back({.key = key,
                          .bytes = queue.bytes,
                          .objects = queue.order.size(),
                          .oldest = queue.order.begin()->since});
    }
    return groups;
}

std::vector<StagedObjects::Object> StagedObjects::take(const GroupKey& group,
                                                       const Limits& limits) {
    std::vector<Object> taken;
    std::uint64_t bytes = 0;
    const auto queue = queues_.find(group);
    if (queue == queues_.end()) return taken;
    for (const Age& age : queue->second.order) {
        const Waiting& waiting = waiting_.at(age.fid);
        if (waiting.object.size_bytes > limits.object_bytes) continue;
        const bool fits = bytes + waiting.object.size_bytes <= limits.bytes;
        if (!taken.empty() && (!fits || taken.size() >= limits.objects)) break;
        bytes += waiting.object.size_bytes;
        taken.push_back(waiting.object);
    }
    for (const Object& each : taken) {
        dequeue(each);
        set_aside(each);
        waiting_.at(each.fid).state = State::kTaken;
    }
    return taken;
}

std::vector<store::Fid> StagedObjects::give_up_larger(const GroupKey& group, std::uint64_t bytes) {
    std::vector<store::Fid> fids;
    const auto queue = queues_.find(group);
    if (queue == queues_.end()) return fids;
    for (const Age& age : queue->second.order) {
        if (waiting_.at(age.fid).object.size_bytes > bytes) fids.push_back(age.fid);
    }
    for (const store::Fid fid : fids) give_up(fid);
    return fids;
}

void StagedObjects::put_back(store::Fid fid) {
    const auto found = waiting_.find(fid);
    if (found == waiting_.end()) return;
    Waiting& waiting = found->second;
    if (waiting.state != State::kTaken && waiting.state != State::kTakenAndChanged) return;
    take_back(waiting.object);
    waiting.state = State::kWaits;
    enqueue(waiting.object);
}

std::vector<StagedObjects::Uncopied> StagedObjects::uncopied() const {
    std::map<objects::PoolId, Uncopied> all;
    const auto add = [&all](objects::PoolId pool, const Queue& queue) {
        const auto [at, is_new] =
            all.emplace(pool, Uncopied{.pool = pool, .oldest = queue.order.begin()->since});
        Uncopied& sum = at->second;
        sum.bytes += queue.bytes;
        sum.objects += queue.order.size();
        sum.oldest = std::min(sum.oldest, queue.order.begin()->since);
    };
    for (const auto& [key, queue] : queues_) add(key.pool, queue);
    for (const auto& [pool, queue] : aside_) add(pool, queue);
    std::vector<Uncopied> list;
    for (const auto& [pool, each] : all) list.push_back(each);
    return list;
}

bool StagedObjects::is_given_up(store::Fid fid) const {
    const auto found = waiting_.find(fid);
    return found != waiting_.end() && found->second.state == State::kGivenUp;
}

const StagedObjects::GroupKey* StagedObjects::group_of(store::Fid fid) const {
    const auto found = waiting_.find(fid);
    return found == waiting_.end() ? nullptr : &found->second.object.group;
}

std::vector<store::Fid> StagedObjects::waiting_of(objects::PoolId pool) const {
    std::vector<store::Fid> fids;
    for (const auto& [fid, waiting] : waiting_) {
        const GroupKey& group = waiting.object.group;
        if (group.pool == pool && !group.moves) fids.push_back(fid);
    }
    return fids;
}

std::optional<StagedObjects::Age> StagedObjects::oldest_with_copy(const std::optional<Age>& after,
                                                                  store::Slot slot) const {
    const auto found = after ? by_age_.upper_bound({slot, *after})
                             : by_age_.lower_bound({slot, Age{.since = Instant::min(), .fid = {}}});
    if (found == by_age_.end() || std::get<0>(*found) != slot) return std::nullopt;
    return std::get<1>(*found);
}

}  // namespace fopd::library

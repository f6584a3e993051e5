#include "objects/room_line.h"

#include <algorithm>
#include <functional>
#include <iterator>

#include "core/stable_sort.h"

namespace fopd::objects {

RoomLine::Place* RoomLine::find(const Key& key) {
    const auto found = std::ranges::find_if(
        places_, [&key](const Place& each) { return each.waiting.key == key; });
    return found == places_.end() ? nullptr : &*found;
}

void RoomLine::let_go(Instant now) {
    std::erase_if(places_, [now](const Place& each) { return each.until <= now; });
}

bool RoomLine::has_place_for(const Waiting& waiting) const {
    if (waiting.key.is_recall) {
        const auto recalls = std::ranges::count_if(
            places_, [](const Place& each) { return each.waiting.key.is_recall; });
        return static_cast<std::size_t>(recalls) < kRecallPlacesMax;
    }
    const auto own = static_cast<std::size_t>(std::ranges::count_if(
        places_, [&waiting](const Place& each) { return each.waiting.owner == waiting.owner; }));
    return places_.size() < kPlacesMax && own < kPlacesMax - places_.size();
}

bool RoomLine::is_futile(const Waiting& waiting, Instant now) const {
    return waiting.key.is_recall && waiting.blocks >= futile_blocks_ && now < futile_until_;
}

bool RoomLine::has_force(const Place& place, Instant now) const {
    if (now < place.has_force_from() || now < place.yields_until) return false;
    return place.has_room || !is_futile(place.waiting, now);
}

bool RoomLine::take_futile_place(const Waiting& waiting, Instant now) {
    if (!waiting.key.is_recall || is_futile(waiting, now)) return false;
    const auto found = std::ranges::find_if(places_, [this, now](const Place& each) {
        const bool has_waited = now >= each.has_force_from();
        return each.waiting.key.is_recall && !each.has_room && has_waited && !has_force(each, now);
    });
    if (found == places_.end()) return false;
    places_.erase(found);
    return true;
}

void RoomLine::wait(const Waiting& waiting, Instant now) {
    let_go(now);
    Place* place = find(waiting.key);
    if (place == nullptr) {
        if (!has_place_for(waiting) && !take_futile_place(waiting, now)) return;
        places_.push_back({.made_at = now});
        place = &places_.back();
    }
    place->waiting = waiting;
    place->until = std::min(after(now, stay_of(waiting.key)), waiting.deadline);
    place->has_room = false;
}

void RoomLine::renew(const Key& key, std::uint64_t blocks, Instant now) {
    let_go(now);
    Place* const place = find(key);
    if (place == nullptr) return;
    if (in_turn_ == key && blocks < place->waiting.blocks) progress_at_ = now;
    place->waiting.blocks = blocks;
    place->until = std::min(after(now, stay_of(key)), place->waiting.deadline);
    place->has_room = true;
}

void RoomLine::leave(const Key& key) {
    std::erase_if(places_, [&key](const Place& each) { return each.waiting.key == key; });
}

void RoomLine::forget(store::Fid fid) {
    std::erase_if(places_, [fid](const Place& each) { return each.waiting.key.fid == fid; });
}

std::uint64_t RoomLine::wanted_until(std::vector<Place>::const_iterator end, Recalls recalls,
                                     Instant now) const {
    std::vector<const DiskUse::Owner*> counted;
    if (recalls == Recalls::kDoNotCount) counted.push_back(nullptr);
    std::uint64_t blocks = 0;
    for (auto each = places_.begin(); each != end; ++each) {
        const DiskUse::Owner* const owner = each->waiting.owner;
        if (!has_force(*each, now) || std::ranges::find(counted, owner) != counted.end()) continue;
        counted.push_back(owner);
        blocks += each->waiting.blocks;
    }
    return blocks;
}

std::uint64_t RoomLine::wanted_before(const Key& key, Instant now) {
    let_go(now);
    const auto own = std::ranges::find_if(
        places_, [&key](const Place& each) { return each.waiting.key == key; });
    return wanted_until(own, key.is_recall ? Recalls::kDoNotCount : Recalls::kCount, now);
}

std::optional<RoomLine::Waiting> RoomLine::first_recall_before(const Key& key, Instant now) {
    let_go(now);
    for (const Place& each : places_) {
        if (each.waiting.key == key) break;
        if (each.waiting.key.is_recall && has_force(each, now)) return each.waiting;
    }
    return std::nullopt;
}

std::uint64_t RoomLine::wanted_since(Instant since, Instant now) {
    let_go(now);
    const auto later = std::ranges::find_if(
        places_, [since](const Place& each) { return each.has_force_from() >= since; });
    return wanted_until(later, Recalls::kCount, now);
}

void RoomLine::observe(std::int64_t available_blocks, Instant now) {
    let_go(now);
    const auto first = std::ranges::find_if(
        places_, [this, now](const Place& each) { return has_force(each, now); });
    if (first == places_.end()) {
        in_turn_.reset();
        return;
    }
    if (in_turn_ != first->waiting.key) {
        in_turn_ = first->waiting.key;
        most_available_blocks_ = kNothingSeen;
    }
    const auto part = static_cast<std::int64_t>(
        std::max<std::uint64_t>(first->waiting.blocks / kProgressPart, 1));
    if (most_available_blocks_ == kNothingSeen ||
        available_blocks >= most_available_blocks_ + part) {
        most_available_blocks_ = available_blocks;
        progress_at_ = now;
        grown_at_ = now;
        sent_blocks_ = 0;
    }
    if (after(progress_at_, kTurn) <= now) end_turn(first, now);
}

// They go to the end of the line: those that wait now come first when they have force again.
void RoomLine::end_turn(std::vector<Place>::iterator first, Instant now) {
    const Waiting ended = first->waiting;
    // With room, it waits for a drive.
    if (ended.key.is_recall && !first->has_room) {
        futile_blocks_ = ended.blocks;
        futile_until_ = after(now, kYields);
    }
    const auto yields = [&ended](const Place& each) {
        return ended.key.is_recall ? each.waiting.key == ended.key
                                   : each.waiting.owner == ended.owner;
    };
    core::stable_sort(places_, std::less{}, yields);
    for (Place& each : places_) {
        if (!yields(each)) continue;
        each.yields_until = after(now, kYields);
        each.made_at = now;
    }
    in_turn_.reset();
}

void RoomLine::note_sent(std::uint64_t blocks, Instant now) {
    if (!in_turn_ || after(grown_at_, kSendingMax) <= now) return;
    sent_blocks_ += blocks;
    constexpr Duration kBlockMayTake = Duration{1s} / kSentPerSecondMin;
    if (now - progress_at_ > kBlockMayTake * static_cast<std::int64_t>(sent_blocks_)) return;
    progress_at_ = now;
    sent_blocks_ = 0;
}

}  // namespace fopd::objects

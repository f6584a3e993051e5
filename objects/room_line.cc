#include "objects/room_line.h"

#include <algorithm>
#include <iterator>

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

template <typename IsEnd>
std::uint64_t RoomLine::wanted(std::size_t recalls_max, Instant now, IsEnd is_end) {
    let_go(now);
    std::uint64_t blocks = 0;
    for (const Place& each : places_) {
        if (is_end(each)) break;
        const bool is_recall = each.waiting.key.is_recall;
        if (!has_force(each, now) || (is_recall && recalls_max == 0)) continue;
        blocks += each.waiting.blocks;
        if (is_recall) --recalls_max;
    }
    return blocks;
}

std::uint64_t RoomLine::wanted_before(const Key& key, Instant now) {
    return wanted(key.is_recall ? 0 : 1, now,
                  [&key](const Place& each) { return each.waiting.key == key; });
}

std::uint64_t RoomLine::wanted_since(Instant since, Instant now) {
    return wanted(1, now, [since](const Place& each) { return each.has_force_from() >= since; });
}

std::optional<RoomLine::Waiting> RoomLine::first_recall_before(const Key& key, Instant now) {
    let_go(now);
    for (const Place& each : places_) {
        if (each.waiting.key == key) break;
        if (each.waiting.key.is_recall && has_force(each, now)) return each.waiting;
    }
    return std::nullopt;
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

// The place goes to the end of the line: those that wait now come first when it has force again.
void RoomLine::end_turn(std::vector<Place>::iterator first, Instant now) {
    // With room, it waits for a drive.
    if (first->waiting.key.is_recall && !first->has_room) {
        futile_blocks_ = first->waiting.blocks;
        futile_until_ = after(now, kYields);
    }
    first->yields_until = after(now, kYields);
    first->made_at = now;
    std::rotate(first, std::next(first), places_.end());
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

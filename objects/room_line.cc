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
        return std::ranges::none_of(places_,
                                    [](const Place& each) { return each.waiting.key.is_recall; });
    }
    const auto own = static_cast<std::size_t>(std::ranges::count_if(
        places_, [&waiting](const Place& each) { return each.waiting.owner == waiting.owner; }));
    return places_.size() < kPlacesMax && own < kPlacesMax - places_.size();
}

void RoomLine::wait(const Waiting& waiting, Instant now) {
    let_go(now);
    Place* place = find(waiting.key);
    if (place == nullptr) {
        if (!has_place_for(waiting)) return;
        places_.push_back({.made_at = now});
        place = &places_.back();
    }
    place->waiting = waiting;
    place->until = std::min(after(now, stay_of(waiting.key)), waiting.deadline);
}

void RoomLine::renew(const Key& key, std::uint64_t blocks, Instant now) {
    let_go(now);
    Place* const place = find(key);
    if (place == nullptr) return;
    if (in_turn_ == key && blocks < place->waiting.blocks) progress_at_ = now;
    place->waiting.blocks = blocks;
    place->until = std::min(after(now, stay_of(key)), place->waiting.deadline);
}

void RoomLine::leave(const Key& key) {
    std::erase_if(places_, [&key](const Place& each) { return each.waiting.key == key; });
}

void RoomLine::forget(store::Fid fid) {
    std::erase_if(places_, [fid](const Place& each) { return each.waiting.key.fid == fid; });
}

std::uint64_t RoomLine::wanted_before(const Key& key, Instant now) {
    let_go(now);
    std::uint64_t blocks = 0;
    for (const Place& each : places_) {
        if (each.waiting.key == key) break;
        if (key.is_recall && each.waiting.key.is_recall) continue;
        if (each.has_force(now)) blocks += each.waiting.blocks;
    }
    return blocks;
}

std::uint64_t RoomLine::wanted_since(Instant since, Instant now) {
    let_go(now);
    std::uint64_t blocks = 0;
    for (const Place& each : places_) {
        if (each.has_force_from() >= since) break;
        if (each.has_force(now)) blocks += each.waiting.blocks;
    }
    return blocks;
}

void RoomLine::observe(std::int64_t available_blocks, Instant now) {
    let_go(now);
    const auto first =
        std::ranges::find_if(places_, [now](const Place& each) { return each.has_force(now); });
    if (first == places_.end()) {
        in_turn_.reset();
        return;
    }
    if (in_turn_ != first->waiting.key) {
        in_turn_ = first->waiting.key;
        most_available_blocks_ = kNothingSeen;
    }
    if (available_blocks > most_available_blocks_) {
        most_available_blocks_ = available_blocks;
        progress_at_ = now;
    }
    if (after(progress_at_, kTurn) > now) return;
    // At the end of the line: those that wait now come first when it has force again.
    first->yields_until = after(now, kYields);
    first->made_at = now;
    std::rotate(first, std::next(first), places_.end());
    in_turn_.reset();
}

}  // namespace fopd::objects

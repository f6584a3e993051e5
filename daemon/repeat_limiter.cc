#include "daemon/repeat_limiter.h"

#include <algorithm>
#include <utility>

namespace fopd::daemon {

// Each event advances next_free by one interval; an event is admitted while next_free is less than
// a full burst ahead of now.
bool RepeatLimiter::admit(std::string_view name, core::Level level, Instant now) {
    constexpr Duration kInterval = Duration(1s) / kRatePerSecond;
    const std::lock_guard lock(mutex_);
    Kind& kind = kind_of(name, now);
    const Instant free_at = std::max(kind.next_free, now);
    if (free_at - now <= kInterval * (kBurst - 1)) {
        kind.next_free = free_at + kInterval;
        return true;
    }
    if (kind.held_back.count == 0) kind.first_held_back = now;
    kind.last_held_back = now;
    kind.held_back.level = level;
    ++kind.held_back.count;
    return false;
}

std::vector<RepeatLimiter::Repeats> RepeatLimiter::take(Which which, Instant now) {
    std::vector<Repeats> taken;
    const std::lock_guard lock(mutex_);
    for (auto& [name, kind] : kinds_) {
        if (kind.held_back.count == 0) continue;
        const bool is_due =
            now - kind.last_held_back >= kQuietAfter || now - kind.first_held_back >= kReportEvery;
        if (which == Which::kDue && !is_due) continue;
        taken.push_back(kind.held_back);
        kind.held_back.count = 0;
    }
    return taken;
}

void RepeatLimiter::give_back(const Repeats& repeats) {
    const std::lock_guard lock(mutex_);
    const auto found = kinds_.find(repeats.name);
    if (found != kinds_.end()) found->second.held_back.count += repeats.count;
}

RepeatLimiter::Kind& RepeatLimiter::kind_of(std::string_view name, Instant now) {
    const auto found = kinds_.find(name);
    if (found != kinds_.end()) return found->second;
    const std::string key(kinds_.size() < kNamesMax ? name : kOtherNames);
    Kind kind{.next_free = now,
              .held_back = {.name = key},
              .first_held_back = now,
              .last_held_back = now};
    return kinds_.try_emplace(key, std::move(kind)).first->second;
}

}  // namespace fopd::daemon

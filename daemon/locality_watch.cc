#include "daemon/locality_watch.h"

#include <algorithm>
#include <cstdint>

#include "daemon/locality_messages.h"

namespace fopd::daemon {

namespace {

constexpr Duration kPulseInterval = 1s;
constexpr Duration kPulseIntervalMin = 1ms;

}  // namespace

LocalityWatch::LocalityWatch(const World& world) : world_(world) {}

LocalityWatch::~LocalityWatch() = default;

void LocalityWatch::add(Locality& locality) {
    const Pulse::World world{
        .control = world_.control, .classes = world_.classes, .tapes = world_.tapes};
    pulses_.push_back(std::make_unique<Pulse>(world, locality));
}

bool LocalityWatch::all_pulses_are_back() const {
    return std::ranges::none_of(pulses_, [](const auto& pulse) { return pulse->under_way(); });
}

Duration LocalityWatch::silent_for(std::size_t locality) const {
    const Pulse& pulse = *pulses_[locality];
    return pulse.under_way() ? world_.control.now() - pulse.answered_at() : Duration{0};
}

Task<void> LocalityWatch::run() {
    const Duration timeout = world_.manager.watchdog_timeout();
    const Duration interval =
        timeout.count() > 0 ? std::clamp<Duration>(timeout / 4, kPulseIntervalMin, kPulseInterval)
                            : kPulseInterval;
    while (!stopped_.cancelled()) {
        for (const auto& pulse : pulses_) {
            if (!pulse->under_way()) pulse->send();
        }
        const auto slept = co_await world_.control.sleep_for(interval, &stopped_);
        if (!slept) co_return;
        look_at_pulses();
    }
}

void LocalityWatch::look_at_pulses() {
    const bool all_answered =
        std::ranges::all_of(pulses_, [](const auto& pulse) { return pulse->answered; });
    if (all_answered) {
        world_.manager.feed_watchdog();
        for (const auto& pulse : pulses_) pulse->answered = false;
    }
    for (std::size_t index = 0; index < pulses_.size(); ++index) {
        Pulse& pulse = *pulses_[index];
        const bool stuck = silent_for(index) > kStuckAfter;
        if (stuck == pulse.stuck) continue;
        pulse.stuck = stuck;
        emit(world_.events, stuck ? core::Level::kError : core::Level::kWarn,
             stuck ? "daemon.locality_stuck" : "daemon.locality_turns_again",
             {{"locality", static_cast<std::uint64_t>(index)},
              {"silent_s", in_seconds(silent_for(index))}});
    }
}

}  // namespace fopd::daemon

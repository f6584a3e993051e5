#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/ensure.h"
#include "core/time.h"

namespace fopd::reqh {

// What a fop goes through, in this order for most; what its type has no work for is passed over. A
// step that is done once more, such as the wait for a lock after the bytes have come, is in its own
// phase again. It may go from any to the reply.
enum class Phase : std::uint8_t {
    kQueued,                // In the request scheduler; all others are the fom's.
    kAuthenticate,          // Who sends it, and what may they do at all?
    kLocalResources,        // Waits for a piece of buffer, if it needs one.
    kDistributedResources,  // Waits for what others use: names, blocks of objects.
    kLoadObject,            // Is there such an object, in that pool?
    kAuthorise,             // May its sender do that to the object?
    kFetch,                 // What is to be written comes, and goes to where nobody looks yet.
    kTransaction,           // Waits for room in the log.
    kExecute,               // What its type is about.
    kReply,
};
inline constexpr std::size_t kPhaseCount = 10;
inline constexpr std::array<std::string_view, kPhaseCount> kPhaseNames{
    "queued",      "authenticate", "local_resources", "distributed_resources",
    "load_object", "authorise",    "fetch",           "transaction",
    "execute",     "reply"};

constexpr std::size_t index_of(Phase phase) {
    return static_cast<std::size_t>(phase);
}
constexpr std::string_view to_string(Phase phase) {
    return kPhaseNames[index_of(phase)];
}

// How long a fop was in each phase so far, in all the times it was in it. Time stands still within
// a turn of the reactor, so a phase that did not wait took none.
class PhaseTimes {
public:
    void begin(Instant now) { *this = PhaseTimes(now); }
    void enter(Phase next, Instant now) {
        spend_until(now);
        phase_ = next;
        since_ = now;
        reached_ |= bit(next);
    }
    void end(Instant now) {
        spend_until(now);
        since_ = now;
    }

    Phase phase() const { return phase_; }
    bool reached(Phase phase) const { return (reached_ & bit(phase)) != 0; }
    // The time in a phase that was left, or up to end().
    Duration of(Phase phase) const { return times_[index_of(phase)]; }
    Duration total() const {
        Duration sum{};
        for (const Duration each : times_) sum += each;
        return sum;
    }
    // Since it had its turn.
    Duration running() const { return total() - of(Phase::kQueued); }

    PhaseTimes() = default;

private:
    // Another reactor, to which the fop went, may be in an earlier turn.
    void spend_until(Instant now) {
        times_[index_of(phase_)] += std::max(now - since_, Duration::zero());
    }
    explicit PhaseTimes(Instant now) : since_(now), reached_(bit(Phase::kQueued)) {}
    static std::uint16_t bit(Phase phase) {
        return static_cast<std::uint16_t>(1U << index_of(phase));
    }

    std::array<Duration, kPhaseCount> times_{};
    Instant since_{};
    Phase phase_ = Phase::kQueued;
    std::uint16_t reached_ = 0;
};

}  // namespace fopd::reqh

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/time.h"

namespace fopd::reqh {

// The phases of a fop, usually in this order; phases without work for a type are skipped. A
// repeated step, such as a second wait for a lock after the bytes have arrived, returns to its
// phase. Any phase may be followed by the reply.
enum class Phase : std::uint8_t {
    kQueued,                // In the request scheduler; the fom executes all others.
    kAuthenticate,          // Identifies the sender and its rights.
    kLocalResources,        // Waits for a buffer, if needed.
    kDistributedResources,  // Waits for names and locks that others hold.
    kLoadObject,            // Finds the object in its pool.
    kAuthorise,             // Checks the sender's rights on the object.
    kFetch,                 // Fetches the bytes to write, and writes them to new blocks.
    kTransaction,           // Waits for room in the log.
    kExecute,               // The work of the fop's type.
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

// The total time a fop has spent in each phase. now() is constant within a reactor turn, so a phase
// that did not wait counts as zero.
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
    // The time in a phase that has ended; end() ends the last one.
    Duration of(Phase phase) const { return times_[index_of(phase)]; }
    Duration total() const {
        Duration sum{};
        for (const Duration each : times_) sum += each;
        return sum;
    }
    // Since its turn in the scheduler.
    Duration running() const { return total() - of(Phase::kQueued); }

    PhaseTimes() = default;

private:
    // The fop may have moved to another reactor whose now() is earlier.
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

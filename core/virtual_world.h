#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/random.h"
#include "core/reactor.h"

namespace fopd::core {

// The simulated world: one thread, a seed, a time line of its own, and any number of reactors that
// take turns. Which of those that have something to do goes next is drawn from the seed; when none
// has, the time jumps to the next deadline. The same seed and the same code give the same run,
// which trace_hash() witnesses.
//
// File operations are really carried out, when they complete: after a delay drawn from the seed.
// There are no foreign descriptors to poll (kUnsupported).
class VirtualWorld {
public:
    explicit VirtualWorld(std::uint64_t seed);
    ~VirtualWorld();
    VirtualWorld(const VirtualWorld&) = delete;
    VirtualWorld& operator=(const VirtualWorld&) = delete;

    // The world outlives the reactor.
    std::unique_ptr<Reactor> make_reactor();

    const Clock& clock() const { return clock_; }
    Instant now() const { return now_; }
    Random& random() { return random_; }
    std::uint64_t seed() const { return seed_; }

    // Lets one reactor have one turn, after moving the time on if it must. False when nothing is
    // left to happen, or nothing before `limit`; the time is then `limit`, unless that is kNever.
    bool step(Instant limit = kNever);
    void run_until(Instant end);
    void run_for(Duration span) { run_until(after(now_, span)); }

    // Runs `task` on `reactor` to its end. Empty when the world came to rest first: the task waits
    // for something that will never happen.
    template <typename T>
    std::optional<T> run(Reactor& reactor, Task<T> task);
    // True when it ended.
    bool run(Reactor& reactor, Task<void> task);

    // The reactor has no turn before `until`: its process is stopped, or its core taken away.
    void stall(const Reactor& reactor, Instant until);

    // Adds what a test or a component wants the hash to cover.
    void trace(std::uint64_t value) { trace_hash_ = mix(trace_hash_, value); }
    std::uint64_t trace_hash() const { return trace_hash_; }

private:
    class VirtualClock final : public Clock {
    public:
        explicit VirtualClock(const VirtualWorld& world) : world_(world) {}
        Instant now() const override { return world_.now_; }
        WallTime wall() const override;

    private:
        const VirtualWorld& world_;
    };
    class VirtualBackend;
    friend VirtualBackend;

    void make_runnable(VirtualBackend& backend);
    void collect_due();
    Instant next_event() const;

    const std::uint64_t seed_;
    Random random_;
    Instant now_{};
    VirtualClock clock_;
    std::uint64_t trace_hash_;
    std::uint64_t reactor_count_ = 0;  // Ever made: their names in the trace.
    Gate tasks_;                       // Of run(): one that never ended goes with its reactor.
    std::vector<VirtualBackend*> backends_;
    std::vector<VirtualBackend*> runnable_;
};

template <typename T>
std::optional<T> VirtualWorld::run(Reactor& reactor, Task<T> task) {
    const auto result = std::make_shared<std::optional<T>>();
    reactor.spawn(tasks_, detail::keep_result(std::move(task), result));
    while (!result->has_value() && step()) {
    }
    return std::move(*result);
}

}  // namespace fopd::core

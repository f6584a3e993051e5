#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "core/random.h"
#include "core/reactor.h"

namespace fopd::core {

// Descriptors that simulated reactors can poll, such as simulated sockets.
class VirtualDescriptors {
public:
    virtual bool has(int fd) const = 0;
    // Returns which of `events`, as for poll(2), the descriptor has now.
    virtual std::uint32_t ready(int fd, std::uint32_t events) const = 0;
    // The time at which the descriptor will have one of `events` unless a call changes its state
    // before. kNever: only a call can give it one.
    virtual Instant ready_at(int fd, std::uint32_t events) const = 0;

protected:
    ~VirtualDescriptors() = default;
};

// The simulated world: one thread, a seed, a virtual time line, and any number of reactors that
// take turns. Each next turn goes to a reactor with work, drawn from the seed; if no reactor has
// work, the time jumps to the next deadline. The same seed and the same code give the same run,
// which trace_hash() verifies.
//
// File operations are really executed, at their completion: after a delay drawn from the seed.
// Only the world's VirtualDescriptors can be polled, others cannot (kUnsupported).
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

    // Runs one turn of one reactor, after advancing the time if necessary. Returns false if nothing
    // is left to happen, or nothing before `limit`; the time is then `limit`, unless that is
    // kNever.
    bool step(Instant limit = kNever);
    void run_until(Instant end);
    void run_for(Duration span) { run_until(after(now_, span)); }

    // Runs `task` on `reactor` to its end. Returns nothing if the world came to rest first: the
    // task waits for an event that will never happen.
    template <typename T>
    std::optional<T> run(Reactor& reactor, Task<T> task);
    // Returns true if the task ended.
    bool run(Reactor& reactor, Task<void> task);

    // The reactor gets no turn before `until`, as if its process was stopped or its core taken
    // away.
    void stall(const Reactor& reactor, Instant until);

    // Drops an operation whose process ends before it has completed.
    void abandon(IoOp& op);

    // Null: there are none. They outlive the polls.
    void use_descriptors(const VirtualDescriptors* descriptors) { descriptors_ = descriptors; }
    // The descriptor, or any of them, may be ready at another time than before.
    void descriptor_changed(int fd);
    void descriptors_changed();

    // Includes `value` in the trace hash.
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
    std::uint64_t reactor_count_ = 0;  // Reactors created so far; numbers them in the trace.
    Gate tasks_;  // For tasks of run(): an unfinished one is destroyed with its reactor.
    const VirtualDescriptors* descriptors_ = nullptr;
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

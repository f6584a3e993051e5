#pragma once

#include "core/events.h"
#include "core/timer_heap.h"
#include "devices/device.h"
#include "devices/health.h"

namespace fopd::devices {

// Wraps a device: counts and times its operations, and writes nothing more after a write or flush
// has failed: further writes return kIo. A device that does not answer becomes suspect, but waiting
// callers keep waiting, because the write may still complete. Lives on the device's reactor.
class WatchedDevice final : public Device, core::Timer {
public:
    // Reactor, device and events outlive it.
    WatchedDevice(core::Reactor& reactor, Device& device, core::EventSink& events,
                  HealthRule rule = {});

    std::string_view name() const override { return device_.name(); }
    const Geometry& geometry() const override { return device_.geometry(); }

    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override;
    Task<Result<void>> write(core::Buffer from, std::uint64_t offset) override;
    Task<Result<void>> gather(std::span<const core::Buffer> parts, std::uint64_t offset) override;
    Task<Result<void>> flush() override;
    Task<Result<void>> discard(std::uint64_t offset, std::uint64_t size_bytes) override;
    Task<Result<Stretch>> find_hole(std::uint64_t offset, std::uint64_t size_bytes) override;

    // Figures and state, for any thread.
    const Health& health() const { return health_; }
    // Total time so far during which at least one operation was in flight.
    Duration busy_time() const {
        return under_way_ == 0 ? busy_ : busy_ + (reactor_.now() - busy_since_);
    }
    // For problems that only higher layers can detect: wrong bytes, an untrustworthy log. Reasons
    // are literals.
    void mark_suspect(const char* reason);
    void mark_read_only(const char* reason);

private:
    struct Begun {
        Instant at;
        std::uint64_t tick;
    };

    Result<void> check_writable() const;
    Begun begin();
    void ended(const Begun& begun, Health::Ended what);
    static void on_tick(core::Timer& timer);
    void tick();
    void report() const;

    core::Reactor& reactor_;
    Device& device_;
    core::EventSink& events_;
    Health health_;
    const Duration tick_length_;
    std::uint64_t under_way_ = 0;
    // While operations are in flight, a timer ticks: operations begun before the last tick are old.
    std::uint64_t ticks_ = 0;
    std::uint64_t old_under_way_ = 0;
    bool is_stuck_ = false;
    Instant busy_since_{};
    Duration busy_{0};  // Up to busy_since_.
};

}  // namespace fopd::devices

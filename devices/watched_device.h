#pragma once

#include "core/events.h"
#include "devices/device.h"
#include "devices/health.h"

namespace fopd::devices {

// A device whose operations are counted and timed, and which is not written to any more once a
// write or a flush has failed: they get kIo from then on. Lives on the device's reactor.
class WatchedDevice final : public Device {
public:
    // All of them outlive it.
    WatchedDevice(core::Reactor& reactor, Device& device, core::EventSink& events,
                  HealthRule rule = {});

    std::string_view name() const override { return device_.name(); }
    const Geometry& geometry() const override { return device_.geometry(); }

    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override;
    Task<Result<void>> write(core::Buffer from, std::uint64_t offset) override;
    Task<Result<void>> gather(std::span<const core::Buffer> pieces, std::uint64_t offset) override;
    Task<Result<void>> flush() override;
    Task<Result<void>> discard(std::uint64_t offset, std::uint64_t size_bytes) override;
    Task<Result<Stretch>> find_hole(std::uint64_t offset, std::uint64_t size_bytes) override;

    // Figures and state, for any thread.
    const Health& health() const { return health_; }
    // How long there was something under way so far.
    Duration busy_time() const {
        return under_way_ == 0 ? busy_ : busy_ + (reactor_.now() - busy_since_);
    }
    // What only those above can see: wrong bytes, a log that cannot be trusted. Literals.
    void mark_suspect(const char* reason);
    void mark_read_only(const char* reason);

private:
    Result<void> check_writable() const;
    Instant begin();
    void ended(const Health::Ended& what);
    void report() const;

    core::Reactor& reactor_;
    Device& device_;
    core::EventSink& events_;
    Health health_;
    std::uint64_t under_way_ = 0;
    Instant busy_since_{};
    Duration busy_{0};  // Up to busy_since_.
};

}  // namespace fopd::devices

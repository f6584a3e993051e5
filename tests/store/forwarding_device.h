#pragma once

#include <cstdint>
#include <string_view>

#include "devices/device.h"

namespace fopd::store::testing {

// A device that does what another does, so that a test overrides only what it leaves out.
class ForwardingDevice : public devices::Device {
public:
    // The device outlives it.
    explicit ForwardingDevice(devices::Device& device) : device_(device) {}

    std::string_view name() const override { return device_.name(); }
    const devices::Geometry& geometry() const override { return device_.geometry(); }
    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override {
        return device_.read(into, offset, wait);
    }
    Task<Result<void>> write(core::Buffer from, std::uint64_t offset) override {
        return device_.write(from, offset);
    }
    Task<Result<void>> flush() override { return device_.flush(); }
    Task<Result<void>> discard(std::uint64_t offset, std::uint64_t size_bytes) override {
        return device_.discard(offset, size_bytes);
    }
    Task<Result<devices::Stretch>> find_hole(std::uint64_t offset,
                                             std::uint64_t size_bytes) override {
        return device_.find_hole(offset, size_bytes);
    }

protected:
    devices::Device& device() { return device_; }

private:
    devices::Device& device_;
};

}  // namespace fopd::store::testing

#pragma once

#include <cstdint>
#include <string>

#include "core/events.h"
#include "core/gate.h"
#include "core/offload.h"
#include "devices/device.h"

namespace fopd::devices {

struct DiskOptions {
    // The name in the configuration.
    std::string name = {};
    // A block device or a regular file.
    std::string path = {};
    // The size of the file to create if it does not exist or is empty: whole blocks. 0: the file
    // must exist. An existing file keeps its size.
    std::uint64_t create_bytes = 0;
    // A created file is sparse: it takes space as it is written.
    bool thin = false;
    // Whether to bypass the page cache, where that is possible.
    enum class Cache : std::uint8_t { kBypass, kUse } cache = Cache::kBypass;
};

// A disk of the real world. Between open() and close() it is locked: another daemon that opens it,
// under whatever name, gets kBusy. Lives on its reactor.
class Disk final : public Device {
public:
    // Reactor, offload and events outlive the disk.
    Disk(core::Reactor& reactor, core::Offload& offload, core::EventSink& events,
         DiskOptions options);
    // Closes the disk if close() has not. REQUIRES: no operation is in flight.
    ~Disk() override;
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;

    // kNotFound; kDenied; kBusy; kInvalid if it is neither a file nor a block device, or is empty;
    // kUnsupported if a sector is larger than a block. Does not change an existing disk. Called
    // once.
    Task<Result<void>> open();
    // Waits for operations in flight, which the kernel bounds; later operations return kClosed.
    Task<void> close();

    std::string_view name() const override { return options_.name; }
    // REQUIRES, as all functions below: open() has succeeded.
    const Geometry& geometry() const override { return geometry_; }

    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override;
    Task<Result<void>> write(core::Buffer from, std::uint64_t offset) override;
    Task<Result<void>> gather(std::span<const core::Buffer> parts, std::uint64_t offset) override;
    Task<Result<void>> flush() override;
    Task<Result<void>> discard(std::uint64_t offset, std::uint64_t size_bytes) override;
    Task<Result<Stretch>> find_hole(std::uint64_t offset, std::uint64_t size_bytes) override;

private:
    Result<void> check_open() const;
    Result<void> check(const core::Buffer& buffer, std::uint64_t offset) const;

    core::Reactor& reactor_;
    core::Offload& offload_;
    core::EventSink& events_;
    const DiskOptions options_;
    Geometry geometry_;
    core::File file_;
    bool is_block_device_ = false;
    core::Gate operations_;
};

}  // namespace fopd::devices

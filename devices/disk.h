#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/events.h"
#include "core/gate.h"
#include "core/offload.h"
#include "devices/device.h"

namespace fopd::devices {

struct DiskOptions {
    // As the configuration calls it.
    std::string name = {};
    // A block device or a regular file.
    std::string path = {};
    // What a file that is not there, or is empty, is made with: whole blocks. 0: it must be there.
    // One that is there keeps its size.
    std::uint64_t create_bytes = 0;
    // A file that is made takes space only as it is written.
    bool thin = false;
    // Whether the page cache is passed by where that is possible.
    enum class Cache : std::uint8_t { kBypass, kUse } cache = Cache::kBypass;
};

// A disk of the real world. Between open() and close() it is ours alone: another daemon that opens
// it, by whatever name, is told kBusy. Lives on its reactor.
class Disk final : public Device {
public:
    // Everything outlives the disk.
    Disk(core::Reactor& reactor, core::Offload& offload, core::EventSink& events,
         DiskOptions options);
    // Closes what close() has not. Requires: no operation is under way.
    ~Disk() override;
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;

    // kNotFound, kDenied, kBusy, kInvalid when it is neither a file nor a block device or is
    // empty, kUnsupported for sectors larger than a block. Changes nothing on a disk that exists.
    // Called once.
    Task<Result<void>> open();
    // Waits for what is under way, which the kernel bounds; later operations get kClosed.
    Task<void> close();

    std::string_view name() const override { return options_.name; }
    // Requires, as for everything below: open() has succeeded.
    const Geometry& geometry() const override { return geometry_; }

    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override;
    Task<Result<void>> write(core::Buffer from, std::uint64_t offset) override;
    Task<Result<void>> gather(std::span<const core::Buffer> pieces, std::uint64_t offset) override;
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

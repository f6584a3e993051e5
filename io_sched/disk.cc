#include "io_sched/disk.h"

#include <array>
#include <memory>

#include "core/ensure.h"
#include "io_sched/io_executor.h"
#include "io_sched/main_scheduler.h"

namespace fopd::io_sched {

namespace {

const core::Buffer& buffer_of(const IoRequest& request, const IoPart& part) {
    const std::span<const core::Buffer> buffers = static_cast<const DiskRequest&>(request).buffers;
    const auto index = static_cast<std::size_t>(&part - request.parts.data());
    const core::Buffer& buffer = buffers.size() == 1 ? buffers.front() : buffers[index];
    ENSURE(buffer.size_bytes == part.size_bytes);
    return buffer;
}

class DiskExecutor final : public IoExecutor {
public:
    explicit DiskExecutor(devices::Device& disk) : disk_(disk) {}

    Task<Result<void>> execute(const IoRequest& request, const IoPart& part) override {
        switch (request.type) {
            case IoType::kRead:
                return disk_.read(buffer_of(request, part), part.offset,
                                  static_cast<const DiskRequest&>(request).wait);
            case IoType::kWrite: return disk_.write(buffer_of(request, part), part.offset);
            case IoType::kFormat: break;
        }
        return disk_.discard(part.offset, part.size_bytes);
    }

    Task<Result<void>> execute_joined(std::span<const IoShare> writes) override {
        static_assert(kJoinedMax <= devices::Device::kGatherMax);
        std::array<core::Buffer, kJoinedMax> parts;
        for (std::size_t i = 0; i < writes.size(); ++i) {
            parts[i] = buffer_of(*writes[i].request, *writes[i].part);
        }
        co_return co_await disk_.gather(std::span(parts.data(), writes.size()),
                                        writes.front().part->offset);
    }

private:
    devices::Device& disk_;
};

}  // namespace

Result<void> add_disk(MainScheduler& scheduler, MediumId medium, devices::Device& disk) {
    return scheduler.add_device(medium, std::make_unique<DiskExecutor>(disk),
                                disk.geometry().rotational);
}

}  // namespace fopd::io_sched

#include "devices/device.h"

#include "core/ensure.h"

namespace fopd::devices {

namespace {

Result<void> refused(const char* why) {
    return std::unexpected(Error{.code = Errc::kInvalid, .context = why});
}

}  // namespace

// Writes one part after the other.
Task<Result<void>> Device::gather(std::span<const core::Buffer> parts, std::uint64_t offset) {
    for (const core::Buffer& part : parts) {
        const auto written = co_await write(part, offset);
        if (!written) co_return written;
        offset += part.size_bytes;
    }
    co_return Result<void>{};
}

Result<void> check_range(const Geometry& geometry, std::uint64_t offset, std::uint64_t size_bytes) {
    if (offset % kBlockBytes != 0 || size_bytes % kBlockBytes != 0) {
        return refused("not whole blocks of the device");
    }
    if (offset > geometry.size_bytes || size_bytes > geometry.size_bytes - offset) {
        return refused("beyond the end of the device");
    }
    return {};
}

Result<void> check_io(const Geometry& geometry, const core::Buffer& buffer, std::uint64_t offset) {
    if (reinterpret_cast<std::uintptr_t>(buffer.data) % kBlockBytes != 0) {
        return refused("memory not aligned for the device");
    }
    return check_range(geometry, offset, buffer.size_bytes);
}

Result<void> check_io(const Geometry& geometry, std::span<const core::Buffer> parts,
                      std::uint64_t offset) {
    ENSURE(!parts.empty());
    ENSURE(parts.size() <= Device::kGatherMax);
    for (const core::Buffer& part : parts) {
        if (const auto fits = check_io(geometry, part, offset); !fits) return fits;
        offset += part.size_bytes;
    }
    return {};
}

std::size_t bytes_of(std::span<const core::Buffer> parts) {
    std::size_t bytes = 0;
    for (const core::Buffer& part : parts) bytes += part.size_bytes;
    return bytes;
}

}  // namespace fopd::devices

#include "devices/device.h"

namespace fopd::devices {

namespace {

Result<void> refused(const char* why) {
    return std::unexpected(Error{.code = Errc::kInvalid, .context = why});
}

}  // namespace

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

}  // namespace fopd::devices

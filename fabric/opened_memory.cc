#include "fabric/opened_memory.h"

namespace fopd::fabric {

bool OpenedMemory::open(std::uint64_t key, std::span<std::byte> memory, Access access) {
    return regions_.try_emplace(key, Region{.bytes = memory, .access = access}).second;
}

void OpenedMemory::close(std::uint64_t key) {
    ENSURE(regions_.erase(key) == 1);
}

void OpenedMemory::take_back(std::uint64_t key) {
    const auto found = regions_.find(key);
    ENSURE(found != regions_.end());
    found->second.is_taken_back = true;
}

std::optional<OpenedMemory::Found> OpenedMemory::find(const RemoteMemory& at, std::uint64_t count,
                                                      Access access) const {
    const auto found = regions_.find(at.key);
    if (found == regions_.end() || found->second.access != access) return std::nullopt;
    const std::span<std::byte> bytes = found->second.bytes;
    if (at.address > bytes.size()) return std::nullopt;
    if (count > bytes.size() - at.address) return std::nullopt;
    return Found{.bytes = bytes.subspan(at.address, count),
                 .is_taken_back = found->second.is_taken_back};
}

}  // namespace fopd::fabric

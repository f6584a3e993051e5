#include "fabric/opened_memory.h"

namespace fopd::fabric {

bool OpenedMemory::open(std::uint64_t key, std::span<std::byte> memory, Access access) {
    return regions_.try_emplace(key, memory, access).second;
}

void OpenedMemory::close(std::uint64_t key) {
    region(key).end_uses();
    regions_.erase(key);
}

void OpenedMemory::take_back(std::uint64_t key) {
    Region& taken = region(key);
    taken.is_taken_back = true;
    taken.end_uses();
}

void OpenedMemory::add_use(std::uint64_t key, Use& use) {
    Region& used = region(key);
    ENSURE(!used.is_taken_back);
    used.uses.push_back(use);
}

OpenedMemory::Region& OpenedMemory::region(std::uint64_t key) {
    const auto found = regions_.find(key);
    ENSURE(found != regions_.end());
    return found->second;
}

// A use that ends may end others: of each one only what is linked still exists.
void OpenedMemory::Region::end_uses() {
    while (Use* const each = uses.pop_front()) each->on_left();
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

#include <algorithm>
#include <cstring>

#include "core/entropy.h"

namespace fopd::core {

void SeededEntropy::fill(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const std::uint64_t number = random_.next();
        const std::size_t count = std::min(bytes.size(), sizeof number);
        std::memcpy(bytes.data(), &number, count);
        bytes = bytes.subspan(count);
    }
}

}  // namespace fopd::core

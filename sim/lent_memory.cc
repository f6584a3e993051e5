#include "sim/lent_memory.h"

#include <algorithm>
#include <cstring>

namespace fopd::sim {

namespace {

constexpr std::byte kPoison{0xa5};
constexpr std::size_t kGuardBytes = 64;
constexpr std::size_t kKeptMax = 16;

bool is_poison(std::span<const std::byte> bytes) {
    return bytes.front() == kPoison &&
           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

LentMemory::Loan::Loan(LentMemory& memory, std::size_t size)
    : memory_(memory), size_(size), bytes_(2 * size + 3 * kGuardBytes, kPoison) {}

LentMemory::Loan::~Loan() {
    std::memset(bytes_.data(), std::to_integer<int>(kPoison), bytes_.size());
    memory_.given_back_.push_back(std::move(bytes_));
    if (memory_.given_back_.size() <= kKeptMax) return;
    if (!is_poison(memory_.given_back_.front())) memory_.was_touched_ = true;
    memory_.given_back_.pop_front();
}

std::span<std::byte> LentMemory::Loan::part(std::size_t index) {
    return std::span(bytes_).subspan(kGuardBytes + index * (size_ + kGuardBytes), size_);
}

bool LentMemory::Loan::guards_untouched() const {
    for (std::size_t index = 0; index < 3; ++index) {
        const std::size_t at = index * (size_ + kGuardBytes);
        if (!is_poison(std::span(bytes_).subspan(at, kGuardBytes))) return false;
    }
    return true;
}

bool LentMemory::untouched() const {
    return !was_touched_ && std::ranges::all_of(given_back_, is_poison);
}

}  // namespace fopd::sim

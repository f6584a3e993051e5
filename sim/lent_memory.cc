#include "sim/lent_memory.h"

#include <algorithm>
#include <cstring>

namespace fopd::sim {

namespace {

constexpr std::byte kPoison{0xa5};

}  // namespace

LentMemory::Loan::Loan(LentMemory& memory, std::size_t size) : memory_(memory) {
    if (memory_.free_.empty()) {
        block_ = std::make_unique<Block>();
    } else {
        // The one that was given back first: the others may still be touched in the meantime.
        block_ = std::move(memory_.free_.front());
        memory_.free_.erase(memory_.free_.begin());
    }
    if (!is_poison(std::span(block_->bytes).first(block_->size == 0 ? 0 : bytes_for(block_->size))))
        memory_.was_touched_ = true;
    block_->size = size;
    if (block_->bytes.size() < bytes_for(size)) block_->bytes.resize(bytes_for(size), kPoison);
}

LentMemory::Loan::~Loan() {
    std::ranges::fill(std::span(block_->bytes).first(bytes_for(block_->size)), kPoison);
    memory_.free_.push_back(std::move(block_));
}

std::span<std::byte> LentMemory::Loan::part(std::size_t index) const {
    const std::size_t at = kGuardBytes + index * (block_->size + kGuardBytes);
    return std::span(block_->bytes).subspan(at, block_->size);
}

bool LentMemory::Loan::guards_untouched() const {
    for (std::size_t index = 0; index < 3; ++index) {
        const std::size_t at = index * (block_->size + kGuardBytes);
        if (!is_poison(std::span(block_->bytes).subspan(at, kGuardBytes))) return false;
    }
    return true;
}

bool LentMemory::untouched() const {
    return !was_touched_ &&
           std::ranges::all_of(free_, [](const auto& block) { return is_poison(block->bytes); });
}

bool LentMemory::is_poison(std::span<const std::byte> bytes) {
    if (bytes.empty()) return true;
    return bytes.front() == kPoison &&
           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace fopd::sim

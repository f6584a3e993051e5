// SPDX-License-Identifier: BSD-2-Clause
#include "client/chunks.h"

#include <algorithm>
#include <utility>

namespace fopd::client {

Chunks::Chunks(Slots& slots, fop::Range whole, Wait wait)
    : slots_(slots), whole_(whole), wait_(wait) {
    if (whole.length == 0) return;
    const std::uint64_t chunk_bytes = slots.options().fop_bytes;
    results_.resize((whole.end() - 1) / chunk_bytes - whole.offset / chunk_bytes + 1);
}

fop::Range Chunks::range_of(std::size_t index) const {
    const std::uint64_t chunk_bytes = slots_.options().fop_bytes;
    const std::uint64_t first = whole_.offset / chunk_bytes + index;
    const std::uint64_t start = std::max(whole_.offset, first * chunk_bytes);
    return {.offset = start, .length = std::min(whole_.end(), (first + 1) * chunk_bytes) - start};
}

Task<Outcome<void>> Chunks::move() {
    const std::size_t count = results_.size();
    if (count == 1) co_return co_await move_chunk(0);
    next_ = 0;
    problem_.reset();
    core::Gate gate;
    const std::size_t together = std::min<std::size_t>(slots_.options().window, count);
    for (std::size_t i = 0; i < together; ++i) slots_.reactor().spawn(gate, move_some());
    co_await gate.close(slots_.reactor());
    if (problem_) co_return std::unexpected(std::move(*problem_));
    co_return {};
}

Task<void> Chunks::move_some() {
    while (!problem_ && next_ < results_.size()) {
        const std::size_t index = next_++;
        auto moved = co_await move_chunk(index);
        if (!moved && !problem_) problem_ = std::move(moved.error());
    }
}

}  // namespace fopd::client

#include "store/hole_filler.h"

#include <algorithm>
#include <cstring>

namespace fopd::store {

namespace {

// Long enough to be efficient, short enough not to delay other I/O.
constexpr std::size_t kWriteBytes = 256UL << 10;

}  // namespace

Result<void> HoleFiller::prepare() {
    if (!zeros_.span().empty()) return {};
    auto memory = AlignedMemory::allocate(kWriteBytes);
    if (!memory) return std::unexpected(memory.error());
    zeros_ = std::move(*memory);
    std::memset(zeros_.span().data(), 0, zeros_.span().size());
    return {};
}

Task<Result<bool>> HoleFiller::fill(devices::Stretch range) {
    const auto prepared = prepare();
    if (!prepared) co_return std::unexpected(prepared.error());
    interrupted_ = false;
    const std::uint64_t end = range.offset + range.size_bytes;
    for (std::uint64_t at = range.offset; at < end;) {
        const auto hole = co_await device_.find_hole(at, end - at);
        if (!hole) co_return false;
        if (hole->size_bytes == 0) break;
        const std::uint64_t hole_end = hole->offset + hole->size_bytes;
        for (at = hole->offset; at < hole_end;) {
            if (stopped_ || interrupted_) co_return false;
            core::Buffer zeros = zeros_.buffer();
            zeros.size_bytes = std::min<std::uint64_t>(kWriteBytes, hole_end - at);
            const auto written = co_await device_.write(zeros, at);
            if (!written) co_return std::unexpected(written.error());
            at += zeros.size_bytes;
        }
    }
    co_return true;
}

}  // namespace fopd::store

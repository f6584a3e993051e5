#include "store/superblock_copies.h"

#include <array>
#include <utility>

namespace fopd::store {

namespace {

// Returns the error that says more about the disk: the one whose code is first in kWorstFirst.
Error worse(const Error& a, const Error& b) {
    constexpr std::array kWorstFirst{Errc::kIo, Errc::kUnsupported, Errc::kDenied, Errc::kCorrupt};
    for (const Errc code : kWorstFirst) {
        if (a.code == code) return a;
        if (b.code == code) return b;
    }
    return a;
}

}  // namespace

Result<void> SuperblockCopies::allocate() {
    auto memory = AlignedMemory::allocate(kSuperblockBytes);
    if (!memory) return std::unexpected(memory.error());
    memory_ = std::move(*memory);
    return {};
}

Task<Result<Superblock>> SuperblockCopies::read(LogId disk_id) {
    auto first = co_await read_copy(0, disk_id);
    auto second = co_await read_copy(1, disk_id);
    if (!first && !second) co_return std::unexpected(worse(first.error(), second.error()));
    if (!first) co_return second;
    if (!second) co_return first;
    co_return first->generation >= second->generation ? std::move(first) : std::move(second);
}

Task<Result<Superblock>> SuperblockCopies::read_copy(unsigned copy, LogId disk_id) {
    // No deadline: the disk is being opened, and the kernel bounds the time.
    const core::WaitOptions no_limit;
    const auto read = co_await device_.read(memory_.buffer(), offset_of(copy), no_limit);
    if (!read) co_return std::unexpected(read.error());
    auto parsed = parse_superblock(memory_.span());
    if (parsed && parsed->disk_id != disk_id) {
        co_return std::unexpected(
            Error{.code = Errc::kDenied, .context = "the superblock is another disk's"});
    }
    co_return parsed;
}

Task<Result<void>> SuperblockCopies::write(unsigned copy, Superblock superblock) {
    core::Buffer whole = memory_.buffer();
    whole.size_bytes = encode_superblock(superblock, memory_.span());
    co_return co_await device_.write(whole, offset_of(copy));
}

}  // namespace fopd::store

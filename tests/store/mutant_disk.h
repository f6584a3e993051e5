#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/ensure.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "tests/store/forwarding_device.h"

namespace fopd::store::testing {

// What a disk does wrong, so that a test can show that its check notices.
struct DiskFlaws {
    bool no_flush = false;       // It says that it flushed, and did not.
    bool zeros_late = false;     // It writes zeros later than the caller is told.
    bool discards_late = false;  // It gives space back later than the caller is told.
};

// A disk that has flaws, or none. It counts the zeros and the discards that reach it. Coroutines of
// the reactor use it, and are dropped before it is destroyed.
class MutantDisk final : public ForwardingDevice {
public:
    // The reactor and the disk outlive it.
    MutantDisk(core::Reactor& reactor, devices::Device& disk, DiskFlaws flaws)
        : ForwardingDevice(disk), reactor_(reactor), flaws_(flaws) {}

    std::uint64_t zeroed_blocks() const { return zeroed_blocks_; }
    std::uint64_t discards() const { return discards_; }

    Task<Result<void>> write(core::Buffer from, std::uint64_t offset) override {
        const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
        if (!std::ranges::all_of(from.span(), is_zero)) return device().write(from, offset);
        zeroed_blocks_ += from.size_bytes / devices::kBlockBytes;
        if (!flaws_.zeros_late) return device().write(from, offset);
        reactor_.spawn(late_, write_late(from, offset));
        return say_done();
    }
    Task<Result<void>> flush() override {
        if (flaws_.no_flush) return say_done();
        return device().flush();
    }
    Task<Result<void>> discard(std::uint64_t offset, std::uint64_t size_bytes) override {
        ++discards_;
        if (!flaws_.discards_late) return device().discard(offset, size_bytes);
        reactor_.spawn(late_, discard_late(offset, size_bytes));
        return say_done();
    }

private:
    static constexpr Duration kLate = 3ms;

    static Task<Result<void>> say_done() { co_return Result<void>{}; }
    Task<void> write_late(core::Buffer from, std::uint64_t offset) {
        const auto slept = co_await reactor_.sleep_for(kLate);
        ENSURE(slept.has_value());
        const auto written = co_await device().write(from, offset);
        ENSURE(written.has_value());
    }
    Task<void> discard_late(std::uint64_t offset, std::uint64_t size_bytes) {
        const auto slept = co_await reactor_.sleep_for(kLate);
        ENSURE(slept.has_value());
        const auto discarded = co_await device().discard(offset, size_bytes);
        ENSURE(discarded.has_value());
    }

    core::Reactor& reactor_;
    const DiskFlaws flaws_;
    std::uint64_t zeroed_blocks_ = 0;
    std::uint64_t discards_ = 0;
    core::Gate late_;
};

}  // namespace fopd::store::testing

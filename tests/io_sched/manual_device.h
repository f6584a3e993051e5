#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/wait_queue.h"
#include "devices/device.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched::testing {

// A device whose operations end when the test says so, the first to begin first.
class ManualDevice final : public devices::Device {
public:
    explicit ManualDevice(core::Reactor& reactor) : ends_(reactor) {}

    struct Operation {
        IoType type;
        std::uint64_t offset;
        std::size_t parts = 1;
        friend bool operator==(const Operation&, const Operation&) = default;
    };
    // All that ever began, in that order.
    const std::vector<Operation>& begun() const { return begun_; }
    std::size_t running() const { return running_; }

    void end_one(Result<void> result = {}) {
        results_.push_back(result);
        ENSURE(ends_.wake_one());
    }
    // From now on all fail as they begin, as those of a disk that was closed do.
    void fail_at_once(const Error& why) { failure_ = why; }
    void end_all() {
        while (!ends_.empty()) end_one();
    }

    std::string_view name() const override { return "manual"; }
    const devices::Geometry& geometry() const override { return geometry_; }
    Task<Result<void>> read(core::Buffer /*into*/, std::uint64_t offset,
                            core::WaitOptions wait) override {
        return run(IoType::kRead, offset, wait);
    }
    Task<Result<void>> write(core::Buffer /*from*/, std::uint64_t offset) override {
        return run(IoType::kWrite, offset, {});
    }
    Task<Result<void>> gather(std::span<const core::Buffer> parts, std::uint64_t offset) override {
        return run(IoType::kWrite, offset, {}, parts.size());
    }
    Task<Result<void>> flush() override { co_return Result<void>{}; }
    Task<Result<void>> discard(std::uint64_t offset, std::uint64_t /*size_bytes*/) override {
        return run(IoType::kFormat, offset, {});
    }
    Task<Result<devices::Stretch>> find_hole(std::uint64_t /*offset*/,
                                             std::uint64_t /*size_bytes*/) override {
        co_return devices::Stretch{};
    }

private:
    Task<Result<void>> run(IoType type, std::uint64_t offset, core::WaitOptions wait,
                           std::size_t parts = 1) {
        begun_.push_back({type, offset, parts});
        if (failure_) co_return std::unexpected(*failure_);
        ++running_;
        const Result<void> woken = co_await ends_.wait(wait);
        --running_;
        if (!woken) co_return woken;
        const Result<void> result = results_.front();
        results_.pop_front();
        co_return result;
    }

    const devices::Geometry geometry_{.size_bytes = 1ULL << 30};
    core::WaitQueue ends_;
    std::deque<Result<void>> results_;
    std::vector<Operation> begun_;
    std::optional<Error> failure_;
    std::size_t running_ = 0;
};

}  // namespace fopd::io_sched::testing

#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/metrics.h"
#include "core/poller.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "devices/device.h"
#include "io_sched/io_request.h"
#include "io_sched/settings.h"

namespace fopd::io_sched {

class IoDevice;
class IoSchedulers;

// What may be said of one read, write or format besides what and where.
struct IoOptions {
    core::WaitOptions wait{};
    IoPriority priority = IoPriority::kForeground;
};

// A locality's way to its devices: requests are pushed here, wait in the I/O scheduler of their
// type, and are given to a device when it has room. At the end of every turn all that can go goes.
//
// Lives on its reactor. Devices are added before requests name their media; stop() is followed by
// destruction. One that is destroyed with its world forgets what it holds.
class MainScheduler final : core::Poller {
public:
    class Awaiter;

    MainScheduler(core::Reactor& reactor, const IoSchedSettings& settings);
    ~MainScheduler();
    MainScheduler(const MainScheduler&) = delete;
    MainScheduler& operator=(const MainScheduler&) = delete;

    // -- devices --

    // From now on `device` serves what `medium` is asked. It outlives its removal, or stop().
    // kBusy: another device has that medium.
    Result<void> add_device(MediumId medium, devices::Device& device);
    // What waits for it goes to other media where it can, or fails with kNotFound; what runs on it
    // ends first. kNotFound: no device has that medium, or it is being removed already. Not
    // together with stop().
    Task<Result<void>> remove_device(MediumId medium);

    // -- requests --

    // Never fails and never waits. Requires: not closed(), and a request that is with no scheduler.
    void push(IoRequest& request);
    // Gives up a request, as its CancelSource would: kCancelled if it still waits.
    void cancel(IoRequest& request);

    // For coroutines: `co_await scheduler.read(…)` gives a Result<void>; kClosed when closed().
    Awaiter read(MediumId medium, core::Buffer into, std::uint64_t offset, IoOptions options = {});
    Awaiter write(MediumId medium, core::Buffer from, std::uint64_t offset, IoOptions options = {});
    Awaiter format(MediumId medium, std::uint64_t offset, std::uint64_t size_bytes,
                   IoOptions options = {});

    // Takes nothing in any more; what waits fails with kClosed, what runs ends first. No deadline:
    // the kernel bounds what a device does.
    Task<void> stop();
    bool closed() const { return closed_; }

    // Requests that wait, of all types.
    std::uint64_t waiting_count() const;
    // Any thread.
    void collect(core::MetricSink& sink, std::string_view locality) const;
    // How much runs on a medium's device and may; null when none has it. Until it is removed.
    const IoDevice* device(MediumId medium) const;

private:
    friend IoRequest;
    class DeviceQueue;

    bool poll() override { return false; }
    void flush() override;
    Duration sleep_max() override { return Duration::max(); }
    Look look() const override { return Look::kNot; }

    DeviceQueue* find(MediumId medium) const;
    // One that waits is given up, because of `why`.
    void give_up(IoRequest& request, Errc why);
    void withdraw(IoRequest& request);

    core::Reactor& reactor_;
    const std::unique_ptr<IoSchedulers> schedulers_;
    std::vector<std::unique_ptr<DeviceQueue>> devices_;
    std::uint64_t arrivals_ = 0;
    bool changed_ = false;  // Since the last pass: something may be able to go.
    bool closed_ = false;
};

// Waits for a request of one part. Lives in the frame of the coroutine that waits.
class MainScheduler::Awaiter final : IoRequest {
public:
    Awaiter(MainScheduler& scheduler, IoType type, const IoPart& part, const IoOptions& options);

    bool await_ready() const { return scheduler_.closed(); }
    void await_suspend(std::coroutine_handle<> handle) {
        handle_ = handle;
        scheduler_.push(*this);
    }
    [[nodiscard]] Result<void> await_resume() const { return result; }

private:
    static void on_complete(IoRequest& request);

    MainScheduler& scheduler_;
    IoPart part_;
    std::coroutine_handle<> handle_;
};

}  // namespace fopd::io_sched

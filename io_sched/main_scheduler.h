#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/counter.h"
#include "core/histogram.h"
#include "core/intrusive_list.h"
#include "core/metrics.h"
#include "core/poller.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/timer_heap.h"
#include "io_sched/io_executor.h"
#include "io_sched/io_media.h"
#include "io_sched/io_request.h"
#include "io_sched/settings.h"

namespace fopd::io_sched {

class IoSchedulers;

// A locality's access to its devices: requests are pushed here, wait in the I/O scheduler of their
// type, and are given to a device when it has room. A pass at the end of every reactor turn starts
// all that can be started.
//
// Lives on its reactor. A device is added before requests name its medium. Destroyed after stop();
// if destroyed with the simulated world, it forgets its requests.
class MainScheduler final : core::Poller, core::Timer {
public:
    MainScheduler(core::Reactor& reactor, const IoSchedSettings& settings);
    ~MainScheduler();
    MainScheduler(const MainScheduler&) = delete;
    MainScheduler& operator=(const MainScheduler&) = delete;

    // -- devices --

    // A disk with `medium` serves requests from now on; `executor` performs them. kBusy: another
    // device has that medium. REQUIRES: not closed().
    Result<void> add_device(MediumId medium, std::unique_ptr<IoExecutor> executor, bool rotational);
    // Waiting requests use other media if they can, or fail with kNotFound; running operations end
    // first. kNotFound: no device has that medium, or it is being removed already. Must not run
    // together with stop().
    Task<Result<void>> remove_device(MediumId medium);

    // -- drives and their media --

    // A drive serves requests of the family kTape from now on; `executor` performs them. It is
    // valid until it is removed. kBusy: another drive has that number. REQUIRES: not closed().
    Result<IoDevice*> add_drive(const IoDevice::Drive& drive, std::unique_ptr<IoExecutor> executor);
    // Waits for the end of its operation. Requests for its cartridge wait for another drive.
    Task<void> remove_drive(IoDevice& drive);
    // A drive that is down gets no operations; the one that runs ends.
    void set_drive_state(IoDevice& drive, DeviceState state);
    // A cartridge was loaded or unloaded otherwise than by an operation. REQUIRES: the drive is
    // idle.
    void set_drive_medium(IoDevice& drive, std::optional<MediumId> medium);
    // Sets the description of a medium. Requests that name an unknown one, or one that cannot be
    // used, go to another medium or fail.
    void put_medium(const IoMedium& medium);
    void remove_medium(MediumId medium);
    const IoMedia& media() const { return media_; }

    // Waiting requests wait in the algorithms of these settings from now on; nothing happens if
    // they are the same as before. Not within a pass. `latency_goal` and `depth_max` do not change.
    void use(const IoSchedSettings& settings);
    const TapeSettings& tape_settings() const { return settings_.tape; }

    // -- requests: called within a reactor turn --

    // Never fails and never waits. Only `wait` of a LimitedRequest and cancel() end it early.
    // REQUIRES: not closed(), and the request is in no scheduler.
    void push(IoRequest& request);
    // As if its `wait` was cancelled: it does not wait any more (kCancelled), nor tries another
    // part after a failure. REQUIRES: it was pushed, and is not completed.
    void cancel(IoRequest& request);

    // Accepts no more requests, fails waiting requests with kClosed, waits for running ones, and
    // removes the devices. Has no deadline: the kernel bounds how long a device takes.
    Task<void> stop();
    bool closed() const { return closed_; }

    // The state of a medium's device, with its depth and operations in flight; null if there is
    // none. Valid until the device is removed.
    const IoDevice* device(MediumId medium) const;

    // Any thread.
    std::uint64_t waiting_count(IoType type) const;
    void collect(core::MetricSink& sink, std::string_view locality) const;

private:
    friend IoRequest;
    friend LimitedRequest;
    class DeviceQueue;
    struct Joined;
    // An operation on a device.
    struct Running {
        IoType type;
        std::uint64_t size_bytes;
        Instant began;
        IoPriority priority;
    };
    struct Chosen {
        DeviceQueue* device;
        Task<void> operation;
    };
    struct Figures {
        core::Counter dispatched;  // Parts given to a device.
        core::Counter joined;  // Dispatched parts that share an operation with the previous part.
        core::Counter failed;  // Requests that ended with an error.
        core::Histogram wait;  // From push() until every part has a device.
    };

    bool poll() override { return false; }
    void end_of_turn() override;
    Duration sleep_max() override { return Duration::max(); }

    IoSchedulers& of(const IoRequest& request) const {
        return *families_[static_cast<std::size_t>(request.family)];
    }
    IoSchedulers& of(const IoDevice& device) const {
        return *families_[static_cast<std::size_t>(device.family())];
    }
    Task<void> remove(DeviceQueue* leaving);
    static void on_time(core::Timer& timer);
    void want_pass();
    DeviceQueue* find(MediumId medium) const;
    void let_wait(IoRequest& request);
    void leave(IoRequest& request);
    bool is_over(const IoRequest& request) const;
    void forget_wait(IoRequest& request);
    static void forget_limit(IoRequest& request);
    void schedule(IoRequest& request);
    void choose(DeviceQueue& device, IoRequest& request, IoPart& part, DeviceQueue* from);
    void choose_joined(DeviceQueue& device);
    Task<void> execute(DeviceQueue* device, IoShare share, DeviceQueue* from = nullptr);
    Task<Result<void>> take_out(DeviceQueue* from, IoType type);
    Task<void> execute_joined(DeviceQueue* device, Joined joined);
    void note_down(DeviceQueue& device);
    void operation_ended(DeviceQueue& device, const Running& what, bool succeeded);
    void part_ended(DeviceQueue& device, const IoShare& share, const Result<void>& result);
    void give_up(IoRequest& request, const Error& why);
    void end_over();
    void complete(IoRequest& request);
    Figures& figures_of(const IoRequest& request) {
        return figures_[static_cast<std::size_t>(request.type)];
    }

    core::Reactor& reactor_;
    IoSchedSettings settings_;
    const Duration latency_goal_;
    const std::uint32_t depth_max_;
    IoMedia media_;
    std::array<std::unique_ptr<IoSchedulers>, kIoFamilyCount> families_;
    std::vector<std::unique_ptr<DeviceQueue>> devices_;
    std::vector<Chosen> chosen_;                 // In this pass; started at its end.
    core::IntrusiveList<WaitingPlace> waiting_;  // Requests in a scheduler.
    core::IntrusiveList<WaitingPlace> over_;     // To be completed at the end of the turn.
    std::array<Figures, kIoTypeCount> figures_;
    std::array<core::Counter, kIoTypeCount> waiting_counts_;
    std::uint64_t arrivals_ = 0;
    bool changed_ = false;  // Since the last pass; a request may be schedulable now.
    bool closed_ = false;
};

}  // namespace fopd::io_sched

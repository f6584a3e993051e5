#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/intrusive_list.h"
#include "io_sched/io_scheduler.h"
#include "io_sched/order.h"

namespace fopd::io_sched {

// For devices with fixed media: one queue per device, each with its own order, so that a device
// without room does not hold up requests for others. A request that several devices could serve
// waits for the least loaded one; a request that needs several goes to one after the other, each as
// soon as it has room. Requests for unknown media are peeked before all others, to be refused.
//
// Foreground requests go first, but if both kinds wait, one background request goes after every few
// foreground ones.
class PerDeviceScheduler final : public IoScheduler {
public:
    explicit PerDeviceScheduler(MakeOrder make_order);
    ~PerDeviceScheduler() override;

    void push_request(IoRequest& request) override;
    IoRequest* peek_request(Instant now) override;
    Result<std::optional<DeviceMedium>> get_device_medium_pair(IoRequest& request,
                                                               Instant now) override;
    void requeue(IoRequest& request) override;
    void remove_request(IoRequest& request) override;
    // A read goes to another of its media.
    bool retry(IoRequest& request, IoPart& part, const IoDevice& device) override;

    void add_device(IoDevice& device) override;
    void remove_device(IoDevice& device) override;
    // kTake: a device without waiting requests. Its medium is fixed, so no other device could serve
    // those, and none can be exchanged.
    IoDevice* reclaim_device(const Reclaim& what) override;
    bool has_device(const IoDevice& device) const override;
    std::size_t device_count() const override { return queues_.size(); }

private:
    class Queue;
    struct Choice {
        Queue* queue = nullptr;
        std::size_t part = 0;
    };

    Choice choose(const IoRequest& request) const;
    Queue* find(MediumId medium) const;
    void enter(IoRequest& request);
    void leave(IoRequest& request);
    void forget(Queue& queue);

    const MakeOrder make_order_;
    std::vector<std::unique_ptr<Queue>> queues_;
    AgeList without_device_;  // Requests for which no device here has a medium.
    IoRequest* peeked_ = nullptr;
};

}  // namespace fopd::io_sched

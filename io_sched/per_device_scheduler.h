#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/intrusive_list.h"
#include "io_sched/io_scheduler.h"
#include "io_sched/order.h"

namespace fopd::io_sched {

// For devices that keep their medium: a queue for each, in an order of its own, so that a device
// without room holds nobody up who wants another. A request that could be served by several waits
// for the one with the least to do; one that needs several goes to one after the other, each as
// soon as it can. Requests for media nobody has are peeked before all others, to be refused.
//
// What is foreground goes first, but while both wait a request of the background has its turn after
// every few.
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

    void add_device(IoDevice& device) override;
    void remove_device(IoDevice& device) override;
    // One for which nothing waits here: its medium stays in it, so nobody else could serve that.
    IoDevice* reclaim_device() override;
    std::size_t device_count() const override { return queues_.size(); }

private:
    class Queue;
    struct Choice {
        Queue* queue = nullptr;
        std::size_t part = 0;
    };

    Choice choose(const IoRequest& request) const;
    Queue* find(MediumId medium) const;
    void place(IoRequest& request);
    void leave(IoRequest& request);
    void forget(Queue& queue);

    const MakeOrder make_order_;
    std::vector<std::unique_ptr<Queue>> queues_;
    AgeList unplaced_;  // No device here has any of their media.
    IoRequest* peeked_ = nullptr;
};

}  // namespace fopd::io_sched

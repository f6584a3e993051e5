#include "io_sched/fifo.h"

#include "io_sched/order.h"
#include "io_sched/per_device_scheduler.h"

namespace fopd::io_sched {

namespace {

class Fifo final : public Order {
public:
    void push(IoRequest& request) override { waiting_.push(request); }
    IoRequest* next(Instant /*now*/) override { return waiting_.oldest(); }
    void take(IoRequest& request) override { AgeList::remove(request); }
    void remove(IoRequest& request) override { AgeList::remove(request); }
    IoRequest* oldest() override { return waiting_.oldest(); }

private:
    AgeList waiting_;
};

}  // namespace

std::unique_ptr<IoScheduler> make_fifo(const IoSchedSettings& /*settings*/) {
    return std::make_unique<PerDeviceScheduler>([] { return std::make_unique<Fifo>(); });
}

}  // namespace fopd::io_sched

#include "daemon/locality_orders.h"

#include <algorithm>

#include "daemon/locality_order.h"

namespace fopd::daemon {

struct LocalityOrders::Receiver {
    Receiver(core::Reactor& control, Locality& to, core::WaitQueue& ended)
        : locality(to), order(control, to.reactor(), to.duties(), ended) {}

    Locality& locality;
    LocalityOrder order;
    std::uint64_t left_running = 0;  // Owned by the locality until the order is back.
};

LocalityOrders::LocalityOrders(core::Reactor& control) : control_(control), ended_(control) {}

LocalityOrders::~LocalityOrders() = default;

void LocalityOrders::add(Locality& locality) {
    receivers_.push_back(std::make_unique<Receiver>(control_, locality, ended_));
}

Task<void> LocalityOrders::carry_out(Receiver* receiver, What what, Instant argument) {
    receiver->left_running = co_await what(&receiver->locality, argument);
}

Task<LeftRunning> LocalityOrders::send(What what, Instant argument, Instant deadline) {
    for (const auto& each : receivers_) {
        if (each->order.under_way()) continue;
        Receiver* const receiver = each.get();
        receiver->order.send([=] { return carry_out(receiver, what, argument); });
    }
    LeftRunning left;
    for (const auto& each : receivers_) {
        co_await each->order.wait(deadline);
        if (each->order.under_way()) {
            ++left.localities;
        } else {
            left.operations += each->left_running;
        }
    }
    co_return left;
}

bool LocalityOrders::under_way() const {
    return std::ranges::any_of(receivers_,
                               [](const auto& each) { return each->order.under_way(); });
}

}  // namespace fopd::daemon

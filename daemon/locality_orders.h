#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/reactor.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "daemon/locality.h"

namespace fopd::daemon {

// The work that still ran when the deadline of an order passed.
struct LeftRunning {
    std::uint64_t operations = 0;  // Operations that had not ended.
    std::uint64_t localities = 0;  // Localities that did not answer.

    bool nothing() const { return operations == 0 && localities == 0; }
};

// Sends all localities of a node the same order and collects the answers. Lives on the control
// reactor.
class LocalityOrders {
public:
    explicit LocalityOrders(core::Reactor& control);
    ~LocalityOrders();
    LocalityOrders(const LocalityOrders&) = delete;
    LocalityOrders& operator=(const LocalityOrders&) = delete;

    // Called for all localities, before send(). The locality outlives the orders.
    void add(Locality& locality);

    // Returns the number of operations that have not ended at the locality.
    using What = Task<std::uint64_t> (*)(Locality*, Instant);
    // Sends the order to each locality that has answered the one before, and waits for the answers
    // until `deadline`. A locality that has not answered by then keeps its order.
    Task<LeftRunning> send(What what, Instant argument, Instant deadline);
    // Whether a locality still keeps an order.
    bool under_way() const;

private:
    struct Receiver;
    static Task<void> carry_out(Receiver* receiver, What what, Instant argument);

    core::Reactor& control_;
    core::WaitQueue ended_;
    std::vector<std::unique_ptr<Receiver>> receivers_;
};

}  // namespace fopd::daemon

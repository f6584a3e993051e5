#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/intrusive_list.h"
#include "core/time.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched {

// Foreground requests that go before one waiting background request that is older than the next.
inline constexpr std::uint32_t kForegroundRunMax = 8;

// The order of the requests that wait for one device. Pure; owns no requests. A request waits here
// with its part `queue_state.part`.
class Order {
public:
    virtual ~Order() = default;

    virtual void push(IoRequest& request) = 0;
    // The next request; null if there is none. Changes nothing.
    virtual IoRequest* next(Instant now) = 0;
    // A request returned by next() is given to the device.
    virtual void take(IoRequest& request) = 0;
    virtual void remove(IoRequest& request) = 0;
    virtual IoRequest* oldest() = 0;
};

using MakeOrder = std::function<std::unique_ptr<Order>()>;

// Requests sorted by age, in whatever order they are added.
class AgeList {
public:
    void push(IoRequest& request) {
        if (IoRequest* const last = newest();
            last == nullptr || last->arrival() < request.arrival()) {
            list_.push_back(request);
        } else {
            list_.insert_before_first(request, [&request](OrderPlace& other) {
                return static_cast<IoRequest&>(other).arrival() > request.arrival();
            });
        }
    }
    static void remove(IoRequest& request) { request.OrderPlace::unlink(); }
    IoRequest* oldest() {
        return list_.empty() ? nullptr : &static_cast<IoRequest&>(list_.front());
    }

    // The oldest first.
    template <typename Visit>
    void for_each(Visit visit) {
        list_.for_each([&](OrderPlace& place) { visit(static_cast<IoRequest&>(place)); });
    }

private:
    IoRequest* newest() { return list_.empty() ? nullptr : &static_cast<IoRequest&>(list_.back()); }

    core::IntrusiveList<OrderPlace> list_;
};

}  // namespace fopd::io_sched

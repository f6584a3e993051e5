#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/intrusive_list.h"
#include "core/time.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched {

// A waiting background request lets at most so many foreground requests pass in a row. Then it goes
// before the next one, if it is older.
inline constexpr std::uint32_t kForegroundRunMax = 8;

// The order of the requests that wait for one device. Does no I/O, and reads no clock. The caller
// owns the requests. A request has a part on this device: parts[queue_state.part].
class Order {
public:
    virtual ~Order() = default;

    virtual void push(IoRequest& request) = 0;
    // The next request; null if there is none. Changes nothing.
    virtual IoRequest* next(Instant now) = 0;
    // Removes a request that next() returned, because the device gets it.
    virtual void take(IoRequest& request) = 0;
    // Removes a request that the device does not get.
    virtual void remove(IoRequest& request) = 0;
    // The request that arrived first; null: there is none.
    virtual IoRequest* oldest() = 0;
};

using MakeOrder = std::function<std::unique_ptr<Order>()>;

// Requests sorted by their arrival; they may be added in any order.
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

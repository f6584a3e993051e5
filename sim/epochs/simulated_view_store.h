#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/gate.h"
#include "core/random.h"
#include "core/reactor.h"
#include "core/virtual_world.h"
#include "eh/view_store.h"

namespace fopd::sim {

struct ViewStoreFaults {
    Duration delay_min = 1ms;  // The delay of a request, and of its answer.
    Duration delay_max = 5ms;
    Duration timeout = 2s;          // A call that gets no answer ends after it.
    std::uint32_t failed_ppm = 0;   // Calls that never get there, which the caller knows.
    std::uint32_t lost_ppm = 0;     // Requests that never get there, which it does not know.
    std::uint32_t unknown_ppm = 0;  // Answers that get lost.
    std::uint32_t late_ppm = 0;     // Requests that get there up to `late` after the timeout.
    Duration late = 5s;
};

// The view that all simulated nodes share, and what befalls their requests, drawn from a seed. It
// outlives the nodes: a request that was sent takes effect although its sender is gone.
class SimulatedViewRegister {
public:
    SimulatedViewRegister(const core::VirtualWorld& world, std::uint64_t seed,
                          const ViewStoreFaults& faults = {})
        : world_(world), random_(seed), faults_(faults) {}

    void set_faults(const ViewStoreFaults& faults) { faults_ = faults; }
    // Until then no request gets there.
    void break_until(Instant end) { broken_until_ = end; }
    // Null: there is no view yet.
    eh::ViewHandle newest();
    // All views that were ever committed, in their order.
    const std::vector<eh::ViewHandle>& history();

private:
    friend class SimulatedViewStore;
    struct Request {
        eh::ViewNumber expected = 0;
        eh::ViewHandle next{};  // Null: a read.
        bool is_done = false;
        eh::ViewHandle seen{};  // The view that a read found.
        // The outcome of a swap. None: the view was not written yet; other requests to write it may
        // be in flight.
        std::optional<eh::Swapped> outcome{};
    };
    // When a request arrives and when its caller goes on; kNever: the request never arrives, or
    // its answer does not.
    struct Journey {
        Instant arrives = kNever;
        Instant answered = kNever;
        Instant ends{};  // When the call ends.
        bool is_refused = false;
    };

    Journey draw();
    void send(std::shared_ptr<Request> request, Instant arrives);
    void serve_due();
    void serve(Request& request);

    const core::VirtualWorld& world_;
    core::Random random_;
    ViewStoreFaults faults_;
    Instant broken_until_{};
    std::uint64_t sent_ = 0;
    std::map<std::pair<Instant, std::uint64_t>, std::shared_ptr<Request>> under_way_;
    std::vector<eh::ViewHandle> history_;
};

// A node's way to the shared view. Lives on the node's reactor; its calls end with the reactor's
// coroutines.
class SimulatedViewStore final : public eh::ViewStore {
public:
    // Both outlive the store.
    SimulatedViewStore(SimulatedViewRegister& shared, core::Reactor& reactor)
        : shared_(shared), reactor_(reactor) {}

    bool is_shared() const override { return true; }
    void read(eh::ViewStoreUser& user) override;
    void swap(eh::ViewNumber expected, eh::ViewHandle next, eh::ViewStoreUser& user) override;

    // Returns when the call in flight has ended.
    Task<void> stop() { co_await calls_.close(reactor_); }

private:
    using Request = SimulatedViewRegister::Request;
    Task<void> run(std::shared_ptr<Request> request, eh::ViewStoreUser* user);

    SimulatedViewRegister& shared_;
    core::Reactor& reactor_;
    core::Gate calls_;
    bool is_asked_ = false;
    eh::ViewHandle unsettled_;  // The outcome of the last swap, of this view, is unknown.
};

}  // namespace fopd::sim

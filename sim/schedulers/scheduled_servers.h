#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/reactor.h"
#include "core/virtual_world.h"
#include "lrs/policies.h"
#include "lrs/scheduler.h"
#include "sim/schedulers/epoch_barrier.h"

namespace fopd::sim {

// Servers with real request schedulers in virtual time. Each serves one request at a time; what
// takes time is said with the request.
class ScheduledServers {
public:
    struct Options {
        std::size_t servers = 1;
        lrs::PolicyChoice policy;
        EpochBarrier::Options epochs{};
        Duration timeout = 5s;
        std::uint64_t seed = 1;
    };
    explicit ScheduledServers(const Options& options);
    ~ScheduledServers();

    // A request of a job at a server.
    struct Work {
        std::size_t server = 0;
        std::size_t job = 0;
        Duration takes{};
    };
    void submit(const Work& work);
    // Called when a request has been served; may submit others.
    using Done = std::function<void(const Work& work)>;
    void on_done(Done done) { done_ = std::move(done); }

    core::VirtualWorld& world() { return world_; }
    Instant now() const { return reactor_->now(); }
    void run_for(Duration span);
    // Until all requests have been served.
    void run_dry();
    EpochBarrier& epochs() { return epochs_; }
    // Puts another policy into use, as an administrator would.
    void use(std::size_t server, const lrs::PolicyChoice& policy);
    // Another server, which takes part from now on. Returns its index.
    std::size_t add_server();
    void cut_off(std::size_t server, bool is_cut_off);
    lrs::Scheduler& scheduler(std::size_t server);
    std::size_t waiting() const { return waiting_; }  // Requests that are not served yet.

private:
    class Server;
    struct Request;

    const Options options_;
    core::VirtualWorld world_;
    const std::unique_ptr<core::Reactor> reactor_;
    EpochBarrier epochs_;
    std::deque<Request> requests_;
    std::vector<std::unique_ptr<Server>> servers_;
    std::size_t waiting_ = 0;
    Done done_;
};

}  // namespace fopd::sim

#include "sim/schedulers/scheduled_servers.h"

#include <utility>

#include "core/ensure.h"
#include "lrs/epoch_frame.h"

namespace fopd::sim {

struct ScheduledServers::Request : lrs::Request {
    explicit Request(const Work& what) : work(what), job("app-" + std::to_string(what.job)) {
        attributes.job = job;
    }

    const Work work;
    const std::string job;
};

class ScheduledServers::Server final : public lrs::Getter, core::Timer {
public:
    Server(ScheduledServers& owner, const lrs::PolicyChoice& policy, std::uint64_t seed)
        : Timer([](Timer& timer) { static_cast<Server&>(timer).finish(); }),
          owner_(owner),
          seed_(seed),
          node_(seed),
          end_(owner.epochs_.make_end()),
          scheduler_(*owner.reactor_, make(policy), end_.get()) {
        scheduler_.next(*this);
    }

    std::unique_ptr<lrs::Policy> make(const lrs::PolicyChoice& policy) {
        return policy.make({.seed = seed_, .share = policy.share(node_, owner_.now())});
    }
    lrs::Scheduler& scheduler() { return scheduler_; }
    EpochBarrier::End& end() { return *end_; }
    void leave() { scheduler_.shutdown(); }

private:
    void on_request(lrs::Request* request) override {
        if (request == nullptr) return;
        current_ = static_cast<Request*>(request);
        owner_.reactor_->arm(*this, after(owner_.now(), current_->work.takes));
    }
    void finish() {
        const Request& done = *std::exchange(current_, nullptr);
        scheduler_.complete(const_cast<Request&>(done));
        --owner_.waiting_;
        if (owner_.done_) owner_.done_(done.work);
        scheduler_.next(*this);
    }

    ScheduledServers& owner_;
    const std::uint64_t seed_;
    lrs::PolicyNode node_;
    std::unique_ptr<EpochBarrier::End> end_;
    lrs::Scheduler scheduler_;
    Request* current_ = nullptr;  // Being served.
};

ScheduledServers::ScheduledServers(const Options& options)
    : options_(options),
      world_(options.seed),
      reactor_(world_.make_reactor()),
      epochs_(*reactor_, lrs::epoch_rules(options.timeout), options.epochs) {
    for (std::size_t i = 0; i < options.servers; ++i) add_server();
}

ScheduledServers::~ScheduledServers() {
    for (const auto& server : servers_) server->leave();
}

void ScheduledServers::submit(const Work& work) {
    ++waiting_;
    servers_[work.server]->scheduler().incoming(requests_.emplace_back(work));
}

// A reactor looks at the clock when it has a turn; it has one at the end.
void ScheduledServers::run_for(Duration span) {
    core::Timer end([](core::Timer&) {});
    reactor_->arm(end, after(world_.now(), span));
    world_.run_for(span);
}

// A scheduler asks for epochs for ever, so that the world never comes to rest.
void ScheduledServers::run_dry() {
    while (waiting_ > 0) {
        const bool has_more = world_.step();
        ENSURE(has_more);
    }
}

void ScheduledServers::use(std::size_t server, const lrs::PolicyChoice& policy) {
    Server& at = *servers_[server];
    at.scheduler().use(at.make(policy));
}

std::size_t ScheduledServers::add_server() {
    // Each node has a seed of its own.
    const std::uint64_t seed = options_.seed * 1000 + servers_.size() + 1;
    servers_.push_back(std::make_unique<Server>(*this, options_.policy, seed));
    return servers_.size() - 1;
}

void ScheduledServers::cut_off(std::size_t server, bool is_cut_off) {
    servers_[server]->end().cut_off(is_cut_off);
}

lrs::Scheduler& ScheduledServers::scheduler(std::size_t server) {
    return servers_[server]->scheduler();
}

}  // namespace fopd::sim

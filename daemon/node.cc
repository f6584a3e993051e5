#include "daemon/node.h"

#include <algorithm>
#include <cerrno>

#include "core/remote.h"

namespace fopd::daemon {

namespace {

constexpr Duration kPulseInterval = 1s;
constexpr Duration kPulseIntervalMin = 1ms;
// A locality that has had its time to work is given this much to say so.
constexpr Duration kAnswerPatience = 2s;

}  // namespace

const char* to_string(NodeState state) {
    switch (state) {
        case NodeState::kStarting: return "starting";
        case NodeState::kReady: return "ready";
        case NodeState::kDraining: return "draining";
        case NodeState::kDrained: return "drained";
        case NodeState::kStopping: return "stopping";
        case NodeState::kStopped: return "stopped";
    }
    return "unknown";
}

// A message that goes to a locality and comes back when the locality has had a turn. It waits for
// nobody: a locality that does not answer keeps it, and the control reactor goes on.
class Node::Pulse final : core::Message {
public:
    Pulse(core::Reactor& control, core::Reactor& locality)
        : Message(&deliver), control_(control), locality_(locality), answered_at_(control.now()) {}

    bool under_way() const { return under_way_; }
    Instant answered_at() const { return answered_at_; }

    void send() {
        ENSURE(!under_way_);
        under_way_ = true;
        on_its_way_back_ = false;
        locality_.post(*this);
    }

    bool answered = false;  // Since the watchdog was last fed.
    bool stuck = false;     // And the log says so.

private:
    static void deliver(Message& message) {
        auto& self = static_cast<Pulse&>(message);
        if (!self.on_its_way_back_) {
            self.on_its_way_back_ = true;
            self.control_.post(self);
            return;
        }
        self.under_way_ = false;
        self.answered = true;
        self.answered_at_ = self.control_.now();
    }

    core::Reactor& control_;
    core::Reactor& locality_;
    Instant answered_at_;
    bool under_way_ = false;
    bool on_its_way_back_ = false;  // Belongs to whoever has the message.
};

// Something a locality is to do and to report on. Like a pulse it waits for nobody.
class Node::Order final : core::Message {
public:
    using What = Task<std::uint64_t> (*)(Locality*, Instant);

    Order(core::Reactor& control, Locality& locality, core::WaitQueue& answered)
        : Message(&deliver), control_(control), locality_(locality), answered_(answered) {}

    bool under_way() const { return under_way_; }
    std::uint64_t answer() const { return answer_; }

    void send(What what, Instant argument) {
        ENSURE(!under_way_);
        under_way_ = true;
        done_ = false;
        what_ = what;
        argument_ = argument;
        locality_.reactor().post(*this);
    }

private:
    static void deliver(Message& message) {
        auto& self = static_cast<Order&>(message);
        if (!self.done_) {
            self.locality_.reactor().spawn(self.locality_.duties(), carry_out(&self));
            return;
        }
        self.under_way_ = false;
        self.answered_.wake_all();
    }
    static Task<void> carry_out(Order* self) {
        self->answer_ = co_await self->what_(&self->locality_, self->argument_);
        self->done_ = true;
        self->control_.post(*self);
    }

    core::Reactor& control_;
    Locality& locality_;
    core::WaitQueue& answered_;
    bool under_way_ = false;
    // From send() to the answer these belong to the locality.
    bool done_ = false;
    What what_ = nullptr;
    Instant argument_;
    std::uint64_t answer_ = 0;
};

Node::Node(NodeWorld world, NodeOptions options)
    : world_(std::move(world)),
      options_(options),
      created_at_(world_.control.now()),
      drained_(world_.control),
      answered_(world_.control),
      registered_(world_.localities.size(), false) {
    for (std::uint32_t index = 0; index < world_.localities.size(); ++index) {
        core::Reactor& reactor = *world_.localities[index];
        localities_.push_back(std::make_unique<Locality>(index, reactor));
        pulses_.push_back(std::make_unique<Pulse>(world_.control, reactor));
        orders_.push_back(std::make_unique<Order>(world_.control, *localities_.back(), answered_));
    }
}

Node::~Node() = default;

Task<Started<void>> Node::start() {
    ENSURE(state_ == NodeState::kStarting);
    world_.manager.status("starting");
    for (const auto& locality : localities_) {
        if (stop_requested_) co_return {};
        const auto opened = co_await open_locality(locality.get());
        if (!opened) co_return std::unexpected(opened.error());
    }
    if (stop_requested_) co_return {};
    world_.control.spawn(background_, watch());
    ready_at_ = world_.control.now();
    enter(NodeState::kReady);
    emit(world_.events, core::Level::kInfo, "daemon.ready",
         {{"localities", static_cast<std::uint64_t>(localities_.size())},
          {"seconds", in_seconds(ready_at_ - created_at_)}});
    world_.manager.status("ready");
    world_.manager.ready();
    co_return {};
}

Task<Started<void>> Node::open_locality(Locality* locality) {
    const std::uint64_t size_bytes =
        world_.configuration.current()->get<LocalitySettings>().buffers_bytes;
    auto open = [locality, size_bytes] { return locality->buffers().open(size_bytes); };
    const auto opened = co_await core::run_on(world_.control, locality->reactor(), open);
    if (!opened) {
        co_return std::unexpected(StartProblem{
            .exit_code = kExitSystem,
            .message = "localities.buffers: " + describe(opened.error()) + "; lower it"});
    }
    registered_[locality->index()] = locality->buffers().registered();
    if (locality->buffers().registered()) co_return {};

    const Error& error = locality->buffers().registration_error();
    const std::string reason = describe(error);
    if (options_.buffers == NodeOptions::Buffers::kRegistered) {
        const std::string advice =
            error.os_errno == ENOMEM ? "; the memory lock limit is too small: raise LimitMEMLOCK= "
                                       "or ulimit -l, or lower localities.buffers"
                                     : "";
        co_return std::unexpected(StartProblem{
            .exit_code = kExitSystem,
            .message =
                "localities.buffers cannot be registered with the kernel: " + reason + advice});
    }
    const std::string warning = "buffers are not registered with the kernel: " + reason;
    if (std::ranges::find(warnings_, warning) == warnings_.end()) {
        warnings_.push_back(warning);
        emit(world_.events, core::Level::kWarn, "daemon.unregistered_buffers",
             {{"reason", std::string_view(reason)}});
    }
    co_return {};
}

Task<Node::Left> Node::drain() {
    if (state_ == NodeState::kDraining) {
        // No deadline of its own: the drain under way has one.
        while (state_ == NodeState::kDraining) {
            [[maybe_unused]] const auto woken = co_await drained_.wait({});
        }
        co_return left_;
    }
    if (state_ != NodeState::kReady) co_return left_;

    enter(NodeState::kDraining);
    co_await world_.control.yield();  // This thread may have blocked: what is the time now?
    const Instant began_at = world_.control.now();
    const Duration timeout = world_.configuration.current()->get<NodeSettings>().drain_timeout;
    emit(world_.events, core::Level::kInfo, "daemon.draining", {{"timeout", in_seconds(timeout)}});
    world_.manager.status("draining");

    const Instant deadline = after(began_at, timeout);
    left_ =
        co_await order_all([](Locality* locality, Instant until) { return locality->drain(until); },
                           deadline, after(deadline, kAnswerPatience));
    emit(world_.events, left_.nothing() ? core::Level::kInfo : core::Level::kWarn, "daemon.drained",
         {{"seconds", in_seconds(world_.control.now() - began_at)},
          {"left_running", left_.running},
          {"silent_localities", left_.localities}});
    world_.manager.status("drained");
    enter(NodeState::kDrained);
    drained_.wake_all();
    co_return left_;
}

Task<Node::Left> Node::order_all(Task<std::uint64_t> (*what)(Locality*, Instant), Instant argument,
                                 Instant deadline) {
    for (const auto& order : orders_) {
        if (!order->under_way()) order->send(what, argument);
    }
    Left left;
    for (const auto& order : orders_) {
        const core::WaitOptions options{.deadline = deadline};
        while (order->under_way()) {
            const auto woken = co_await answered_.wait(options);
            if (!woken) break;
        }
        if (order->under_way()) {
            ++left.localities;
        } else {
            left.running += order->answer();
        }
    }
    co_return left;
}

Task<bool> Node::stop() {
    stop_requested_ = true;
    // Before the drain, which may take its time: the service manager is to know what it waits for.
    world_.manager.stopping();
    if (state_ == NodeState::kReady || state_ == NodeState::kDraining) {
        [[maybe_unused]] const Left left = co_await drain();
    }
    enter(NodeState::kStopping);
    world_.manager.status("stopping");
    stop_watching_.cancel();
    co_await background_.close(world_.control);
    co_await world_.control.yield();  // This thread may have blocked: what is the time now?
    // Who does not answer a drain does not hear of a close either.
    const bool deaf =
        std::ranges::any_of(orders_, [](const auto& order) { return order->under_way(); });
    const Left left =
        co_await order_all([](Locality* locality, Instant) { return locality->close(); }, Instant{},
                           after(world_.control.now(), kAnswerPatience));
    if (deaf || left.localities > 0) {
        emit(world_.events, core::Level::kError, "daemon.not_stopped",
             {{"silent_localities", left.localities}});
        co_return false;
    }
    // Every pulse is at home again: it was sent before the close, and is answered in order.
    for (const auto& pulse : pulses_) ENSURE(!pulse->under_way());
    enter(NodeState::kStopped);
    emit(world_.events, core::Level::kInfo, "daemon.stopped", {{"cut_off", left.running}});
    co_return true;
}

Node::ReloadResult Node::reload() {
    if (state_ != NodeState::kReady) {
        return std::unexpected(Configuration::Refused{
            .busy = true, .problems = {std::string("the node is ") + to_string(state_)}});
    }
    world_.manager.reloading();
    auto reloaded = world_.configuration.reload();
    if (reloaded) {
        world_.apply_settings();
        for (const std::string& key : reloaded->changed) {
            emit_each(world_.events, core::Level::kInfo, "daemon.config_changed",
                      {{"key", std::string_view(key)}});
        }
        for (const std::string& key : reloaded->needs_restart) {
            emit_each(world_.events, core::Level::kWarn, "daemon.config_needs_restart",
                      {{"key", std::string_view(key)}});
        }
        emit_each(world_.events, core::Level::kInfo, "daemon.reloaded",
                  {{"config_hash", std::string_view(reloaded->hash)},
                   {"changed", static_cast<std::uint64_t>(reloaded->changed.size())}});
    } else {
        for (const std::string& problem : reloaded.error().problems) {
            emit_each(world_.events, core::Level::kError, "daemon.config_refused",
                      {{"problem", std::string_view(problem)}});
        }
    }
    world_.manager.ready();
    return reloaded;
}

Duration Node::silent_for(std::size_t locality) const {
    const Pulse& pulse = *pulses_[locality];
    return pulse.under_way() ? world_.control.now() - pulse.answered_at() : Duration{0};
}

// Asks every locality for a sign of life, at least four times in the watchdog's time.
Task<void> Node::watch() {
    const Duration timeout = world_.manager.watchdog_timeout();
    const Duration interval =
        timeout.count() > 0 ? std::clamp<Duration>(timeout / 4, kPulseIntervalMin, kPulseInterval)
                            : kPulseInterval;
    while (!stop_watching_.cancelled()) {
        for (const auto& pulse : pulses_) {
            if (!pulse->under_way()) pulse->send();
        }
        const auto slept = co_await world_.control.sleep_for(interval, &stop_watching_);
        if (!slept) co_return;
        look_at_pulses();
    }
}

void Node::look_at_pulses() {
    const bool all_answered =
        std::ranges::all_of(pulses_, [](const auto& pulse) { return pulse->answered; });
    if (all_answered) {
        world_.manager.feed_watchdog();
        for (const auto& pulse : pulses_) pulse->answered = false;
    }
    for (std::size_t index = 0; index < pulses_.size(); ++index) {
        Pulse& pulse = *pulses_[index];
        const bool stuck = silent_for(index) > kStuckAfter;
        if (stuck == pulse.stuck) continue;
        pulse.stuck = stuck;
        emit(world_.events, stuck ? core::Level::kError : core::Level::kWarn,
             stuck ? "daemon.locality_stuck" : "daemon.locality_turns_again",
             {{"locality", static_cast<std::uint64_t>(index)},
              {"silent_s", in_seconds(silent_for(index))}});
    }
}

void Node::enter(NodeState state) {
    // The states come in the order of their enumerators; some may be left out.
    ENSURE(state > state_);
    state_ = state;
}

}  // namespace fopd::daemon

#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/round_trip.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "daemon/class_ledger.h"
#include "daemon/locality.h"

namespace fopd::daemon {

// Messages of the control reactor to a locality. The control reactor never blocks on one: a
// locality that does not answer keeps the message.

// Checks that the locality's reactor still runs, and brings back its figures.
class Pulse final : public core::RoundTrip {
public:
    Pulse(core::Reactor& control, Locality& locality, ClassLedger& classes)
        : RoundTrip(control, locality.reactor()),
          locality_(locality),
          classes_(classes),
          answered_at_(control.now()) {}

    void send() { depart(); }
    Instant answered_at() const { return answered_at_; }

    bool answered = false;  // Since the watchdog was last fed.
    bool stuck = false;     // The locality is stuck, and that has been logged.

private:
    void arrive() override {
        locality_.publish();
        news_ = locality_.take_class_news();
        go_back();
    }
    void come_back() override {
        answered = true;
        answered_at_ = here().now();
        classes_.take(locality_.index(), news_, answered_at_);
    }

    Locality& locality_;
    ClassLedger& classes_;
    Instant answered_at_;
    std::vector<lrs::ClassNews> news_;  // Owned by the locality until the message is back.
};

// A task for the locality; its result comes back.
class Order final : public core::RoundTrip {
public:
    using What = Task<std::uint64_t> (*)(Locality*, Instant);

    Order(core::Reactor& control, Locality& locality, core::WaitQueue& answered)
        : RoundTrip(control, locality.reactor()), locality_(locality), answered_(answered) {}

    std::uint64_t answer() const { return answer_; }
    void send(What what, Instant argument) {
        what_ = what;
        argument_ = argument;
        depart();
    }

private:
    void arrive() override { there().spawn(locality_.duties(), carry_out(this)); }
    void come_back() override { answered_.wake_all(); }
    static Task<void> carry_out(Order* self) {
        self->answer_ = co_await self->what_(&self->locality_, self->argument_);
        self->go_back();
    }

    Locality& locality_;
    core::WaitQueue& answered_;
    // Owned by the locality until the message is back.
    What what_ = nullptr;
    Instant argument_;
    std::uint64_t answer_ = 0;
};

// Sends new settings. Settings that arrive while the message is in transit are sent when it is
// back; only the newest are kept.
class Update final : public core::RoundTrip {
public:
    Update(core::Reactor& control, Locality& locality)
        : RoundTrip(control, locality.reactor()), locality_(locality) {}

    void send(LiveSettings settings) {
        next_ = std::move(settings);
        if (!under_way()) leave();
    }

private:
    void leave() {
        settings_ = *std::exchange(next_, std::nullopt);
        depart();
    }
    void arrive() override {
        locality_.apply(settings_);
        go_back();
    }
    void come_back() override {
        if (next_) leave();
    }

    Locality& locality_;
    std::optional<LiveSettings> next_;
    LiveSettings settings_;  // Owned by the locality until the message is back.
};

}  // namespace fopd::daemon

#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/round_trip.h"
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

#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/round_trip.h"
#include "daemon/class_ledger.h"
#include "daemon/locality.h"
#include "daemon/tape_watch.h"

namespace fopd::daemon {

// Messages of the control reactor to a locality. The control reactor never blocks on one: a
// locality that does not answer keeps the message.

// Checks that the locality's reactor still runs, and brings back its figures.
class Pulse final : public core::RoundTrip {
public:
    // All of it outlives the pulse.
    struct World {
        core::Reactor& control;
        ClassLedger& classes;
        TapeWatch& tapes;
    };
    Pulse(const World& world, Locality& locality)
        : RoundTrip(world.control, locality.reactor()),
          locality_(locality),
          world_(world),
          answered_at_(world.control.now()) {}

    void send() {
        bad_media_ = world_.tapes.bad_media();
        depart();
    }
    Instant answered_at() const { return answered_at_; }

    bool answered = false;  // Since the watchdog was last fed.
    bool stuck = false;     // The locality is stuck, and that has been logged.

private:
    void arrive() override {
        locality_.publish();
        news_ = locality_.take_class_news();
        findings_ = look_at_tapes(locality_, bad_media_);
        go_back();
    }
    void come_back() override {
        answered = true;
        answered_at_ = here().now();
        world_.classes.take(locality_.index(), news_, answered_at_);
        world_.tapes.take(locality_.index(), std::move(findings_));
    }

    Locality& locality_;
    const World world_;
    Instant answered_at_;
    // Owned by the locality until the message is back.
    std::vector<lrs::ClassNews> news_;
    std::vector<library::Cartridge> bad_media_;
    TapeFindings findings_;
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

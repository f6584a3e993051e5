#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/events.h"
#include "core/reactor.h"
#include "core/timer_heap.h"
#include "fabric/stranger.h"

namespace fopd::daemon {

// Reports strangers as events. The first one of a kind is reported at once, and those of the same
// kind that come within kInterval are counted and reported together at its end, with the address of
// the last one. So a port scan writes few lines, and a program that connects to the wrong port is
// seen at once. Lives on one reactor.
class StrangerLog final : core::Timer {
public:
    static constexpr Duration kInterval = 1min;

    // Both outlive it.
    StrangerLog(core::Reactor& reactor, core::EventSink& events)
        : Timer(&on_time), reactor_(reactor), events_(events) {}

    void add(const fabric::Stranger& stranger);
    // Reports those that were only counted so far. Called at the end, on the reactor.
    void stop();

private:
    struct OfKind {
        std::uint64_t count = 0;  // Strangers that are not reported yet.
        std::string peer;         // The last of them.
        Instant until = kNever;   // The end of the interval; kNever: none has begun.
    };
    static void on_time(core::Timer& timer);
    void report(fabric::Stranger::Kind kind);
    void arm();

    core::Reactor& reactor_;
    core::EventSink& events_;
    std::array<OfKind, fabric::Stranger::kKindCount> kinds_;
};

}  // namespace fopd::daemon

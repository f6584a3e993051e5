#include "daemon/stranger_log.h"

#include <algorithm>

namespace fopd::daemon {

void StrangerLog::add(const fabric::Stranger& stranger) {
    OfKind& kind = kinds_[static_cast<std::size_t>(stranger.kind)];
    ++kind.count;
    kind.peer = stranger.peer;
    if (kind.until == kNever) report(stranger.kind);
    arm();
}

void StrangerLog::stop() {
    disarm();
    for (const fabric::Stranger::Kind each : fabric::kStrangerKinds) {
        if (kinds_[static_cast<std::size_t>(each)].count > 0) report(each);
    }
}

void StrangerLog::on_time(core::Timer& timer) {
    auto& self = static_cast<StrangerLog&>(timer);
    const Instant now = self.reactor_.now();
    for (const fabric::Stranger::Kind each : fabric::kStrangerKinds) {
        OfKind& kind = self.kinds_[static_cast<std::size_t>(each)];
        if (kind.until > now) continue;
        kind.until = kNever;
        if (kind.count > 0) self.report(each);
    }
    self.arm();
}

// Begins an interval.
void StrangerLog::report(fabric::Stranger::Kind which) {
    OfKind& kind = kinds_[static_cast<std::size_t>(which)];
    // Who only looks whether something listens is no mistake.
    const bool is_mistake = which != fabric::Stranger::Kind::kLeft;
    emit(events_, is_mistake ? core::Level::kWarn : core::Level::kInfo, "fabric.no_request",
         {{"kind", fabric::to_string(which)},
          {"peer", std::string_view(kind.peer)},
          {"ended", kind.count},
          {"reason", fabric::summary_of(which)}});
    kind.count = 0;
    kind.until = after(reactor_.now(), kInterval);
}

void StrangerLog::arm() {
    Instant next = kNever;
    for (const OfKind& each : kinds_) next = std::min(next, each.until);
    if (next == kNever) return disarm();
    reactor_.arm(*this, next);
}

}  // namespace fopd::daemon

#include "reqh/running_fop.h"

namespace fopd::reqh {

Granted<> RunningFop::check_wanted() const {
    if (site_.cancel->cancelled()) return refused(fop::Status::kCancelled, "given up");
    if (deadline() <= reactor().now()) {
        return refused(fop::Status::kTimedOut, "the deadline passed before it could run");
    }
    return {};
}

void RunningFop::move_to(const Site& site) {
    site_ = site;
    home_ = nullptr;
    buffer_ = origin_.buffer;
    // A registered region is valid only on the reactor that registered it.
    if (origin_.reactor != site.reactor) buffer_.region = -1;
}

void RunningFop::select(objects::HomeVolume& home) {
    home_ = &home;
    hold_ = objects::HomeVolume::Hold(home);
}

Granted<> RunningFop::check_serving() const {
    if (volume().serving()) return {};
    return refused(fop::Status::kReadOnly, volume().failure().context);
}

Granted<> RunningFop::check_certain(store::Fid fid) const {
    if (!volume().is_uncertain(fid)) return {};
    return refused(fop::Status::kReadOnly,
                   "its disk has failed; whether its last change is lost shows after a restart");
}

}  // namespace fopd::reqh

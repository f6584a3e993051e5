#include "reqh/held_names.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::reqh {

namespace {

// The longest wait until a name can be taken from its owner, however late the fop's deadline is.
constexpr Duration kRemovalWaitMax = 30s;

}  // namespace

Task<Granted<>> HeldNames::hold(std::span<const Wanted> wanted) {
    ENSURE(!wanted.empty());
    ENSURE(wanted.size() <= holds_.size());
    fop_.enter(Phase::kDistributedResources);
    objects::Names& names = fop_.stores().parts().names;
    const bool is_reversed = wanted.size() == 2 && names.before(wanted[1].name, wanted[0].name);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::size_t which = is_reversed ? wanted.size() - 1 - i : i;
        const Wanted& each = wanted[which];
        auto hold = each.to_remove ? names.hold_to_remove(each.name, wait_to_remove())
                                   : names.hold(each.name, fop_.wait());
        const Waiting waiting = fop_.waits_for({.what = WaitsFor::kName});
        const auto held = co_await std::move(hold);
        if (!held) co_return refused(why_not_held(held.error()));
        holds_[which] = *held;
    }
    co_return Granted<>{};
}

// Limits the wait: objects that the name replaced may be on a missing disk, and later waiters of
// the name must not wait that long.
core::WaitOptions HeldNames::wait_to_remove() const {
    return {.deadline = std::min(fop_.deadline(), after(fop_.reactor().now(), kRemovalWaitMax)),
            .cancel = fop_.site().cancel};
}

Refusal HeldNames::why_not_held(const Error& error) const {
    const bool own_deadline = fop_.deadline() <= fop_.reactor().now();
    if (error.code != Errc::kTimedOut || own_deadline) return untraced(error);
    return {.status = fop::Status::kBusy, .words = error.context};
}

Task<void> HeldNames::let_go() {
    for (auto& hold : holds_) {
        if (!hold) continue;
        auto let_go = fop_.stores().parts().names.let_go(*std::move(hold));
        hold.reset();
        const Waiting waiting = fop_.waits_for({.what = WaitsFor::kLocality});
        co_await std::move(let_go);
    }
}

void HeldNames::let_go_after_change() {
    for (auto& hold : holds_) {
        if (hold) fop_.stores().parts().names.let_go_after_change(*hold);
        hold.reset();
    }
}

}  // namespace fopd::reqh

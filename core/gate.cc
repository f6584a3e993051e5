#include "core/gate.h"

#include "core/reactor.h"

namespace fopd::core {

void Gate::CloseAwaiter::await_suspend(std::coroutine_handle<> handle) {
    ENSURE(gate_.closer_ == nullptr);
    handle_ = handle;
    gate_.closer_ = this;
    if (deadline_ != kNever) reactor_.arm(*this, deadline_);
}

void Gate::CloseAwaiter::on_time(Timer& timer) {
    auto& self = static_cast<CloseAwaiter&>(timer);
    self.timed_out_ = true;
    self.finish();
}

void Gate::CloseAwaiter::finish() {
    gate_.closer_ = nullptr;
    disarm();
    reactor_.schedule(handle_);
}

void Gate::leave() {
    ENSURE(count_ > 0);
    --count_;
    if (count_ == 0 && closer_ != nullptr) closer_->finish();
}

}  // namespace fopd::core

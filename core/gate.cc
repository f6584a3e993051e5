#include "core/gate.h"

#include "core/reactor.h"

namespace fopd::core {

void Gate::CloseAwaiter::await_suspend(std::coroutine_handle<> handle) {
    ENSURE(gate_.closer_ == nullptr);
    handle_ = handle;
    gate_.closer_ = this;
}

void Gate::leave() {
    ENSURE(count_ > 0);
    --count_;
    if (count_ > 0 || closer_ == nullptr) return;
    CloseAwaiter* const closer = std::exchange(closer_, nullptr);
    closer->reactor_.schedule(closer->handle_);
}

}  // namespace fopd::core

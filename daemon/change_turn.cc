#include "daemon/change_turn.h"

namespace fopd::daemon {

namespace {

// How long an operation waits for the one in progress.
constexpr Duration kTurnWithin = 60s;

}  // namespace

Task<std::expected<void, Configuration::Refused>> ChangeTurn::begin() {
    const bool is_free = co_await wait_until_free(after(control_.now(), kTurnWithin));
    if (!is_free) {
        Configuration::Refused refusal{.busy = true, .problems = {}};
        refusal.problems.emplace_back("another change or a backup is in progress");
        co_return std::unexpected(std::move(refusal));
    }
    const auto ready = life_.check_ready();
    if (!ready) co_return ready;
    taken_ = true;
    co_return std::expected<void, Configuration::Refused>();
}

void ChangeTurn::end() {
    taken_ = false;
    ended_.wake_all();
}

Task<bool> ChangeTurn::wait_until_free(Instant deadline) {
    const core::WaitOptions wait{.deadline = deadline};
    while (taken_) {
        const auto woken = co_await ended_.wait(wait);
        if (!woken) co_return false;
    }
    co_return true;
}

}  // namespace fopd::daemon

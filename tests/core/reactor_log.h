#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/core/reactor_kinds.h"

namespace fopd::core::testing {

using Log = std::vector<std::string>;

inline Kind any_kind() {
    return GENERATE(from_range(kAllKinds.begin(), kAllKinds.end()));
}
inline Kind real_kind() {
    return GENERATE(from_range(kRealKinds.begin(), kRealKinds.end()));
}

inline Task<void> note(Log* log, std::string text) {
    log->push_back(std::move(text));
    co_return;
}

inline Task<void> close_gate(Gate* gate, Reactor* reactor) {
    co_await gate->close(*reactor);
}

inline Task<void> sleep_then_note(Reactor* reactor, Log* log, Instant deadline, std::string text) {
    const auto slept = co_await reactor->sleep_until(deadline);
    log->push_back(text + (slept ? "" : " cancelled"));
}

// Ends when every task of `gate` has ended.
inline void drain(Harness& harness, Gate& gate) {
    harness.run(close_gate(&gate, &harness.reactor()));
}

inline Task<void> yield_and_note(Reactor* reactor, Log* log, std::string text, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        log->push_back(text);
        co_await reactor->yield();
    }
}

inline Task<void> cancel_later(Reactor* reactor, CancelSource* source, int rounds) {
    for (int i = 0; i < rounds; ++i) co_await reactor->yield();
    source->cancel();
}

}  // namespace fopd::core::testing

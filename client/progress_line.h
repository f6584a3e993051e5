// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/slots.h"
#include "client/transfer.h"
#include "core/cancel.h"
#include "core/gate.h"
#include "core/reactor.h"

namespace fopd::client {

// Shows the progress of a long command on standard error, if that is a terminal.
class ProgressLine {
public:
    struct Options {
        std::string label{};            // Safe for a terminal.
        std::uint64_t total_bytes = 0;  // 0: it is not known.
        bool wanted = true;
        bool moves_bytes = true;                // Otherwise it shows for how long it has waited.
        const Slots::TapeWait* tape = nullptr;  // Outlives it. Null: nothing waits for tape.
    };
    struct Moved {
        std::uint64_t bytes = 0;
        std::optional<std::uint64_t> objects{};  // None: it is about one.
    };
    using Look = std::function<Moved()>;
    // `look` is called until close() has returned.
    ProgressLine(core::Reactor& reactor, Look look, Options options);
    ProgressLine(core::Reactor& reactor, const Transfer& transfer, Options options);
    // Awaited once, after the transfer: removes the line.
    Task<void> close();
    // Removes the line, so that something else can be printed. It is shown again soon.
    void clear();

private:
    Task<void> show();
    std::string line(Duration span) const;
    std::string tape_line() const;

    core::Reactor& reactor_;
    const Look look_;
    const Options options_;
    bool is_shown_ = false;
    core::CancelSource ended_;
    core::Gate gate_;
};

}  // namespace fopd::client

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
        std::uint64_t total_bytes = 0;  // 0: not known.
        bool wanted = true;
        bool moves_bytes = true;                // False: the line shows the time instead of bytes.
        const Slots::TapeWait* tape = nullptr;  // Outlives the line. Null: no call waits for tape.
    };
    struct Moved {
        std::uint64_t bytes = 0;
        std::optional<std::uint64_t> objects{};  // None: the command is about one object.
    };
    using Look = std::function<Moved()>;
    // `look` returns the progress. It is called until close() has returned.
    ProgressLine(core::Reactor& reactor, Look look, Options options);
    ProgressLine(core::Reactor& reactor, const Transfer& transfer, Options options);
    // Awaited once, after the transfer: removes the line.
    Task<void> close();
    // Removes the line, so that the caller can print. The line returns within a second.
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

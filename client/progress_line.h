// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>

#include "client/transfer.h"
#include "core/cancel.h"
#include "core/gate.h"
#include "core/reactor.h"

namespace fopd::client {

// Shows the progress of a long transfer on standard error, if that is a terminal.
class ProgressLine {
public:
    struct Options {
        std::string label{};            // Safe for a terminal.
        std::uint64_t total_bytes = 0;  // 0: it is not known.
        bool wanted = true;
    };
    ProgressLine(core::Reactor& reactor, const Transfer& transfer, Options options);
    // Awaited once, after the transfer: removes the line.
    Task<void> close();

private:
    Task<void> show();
    std::string line(Duration span) const;

    core::Reactor& reactor_;
    const Transfer& transfer_;
    const Options options_;
    core::CancelSource ended_;
    core::Gate gate_;
};

}  // namespace fopd::client

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <utility>

#include "client/object_run.h"
#include "client/progress_line.h"
#include "core/printable.h"
#include "core/task.h"

namespace fopd::client {

// Options for a line on the terminal that names a long call and shows how long it has run.
inline ProgressLine::Options watch_of(const ObjectRun& run, const std::string& what) {
    std::string label(run.call.verb);
    if (!what.empty()) label += " " + core::printable(what);
    return {.label = std::move(label),
            .wanted = run.call.output == Output::kPage,
            .moves_bytes = false};
}

template <typename T>
Task<T> watched(const ObjectRun* run, std::string what, Task<T> call) {
    ProgressLine::Options options = watch_of(*run, what);
    ProgressLine::Look look = [] { return ProgressLine::Moved{}; };
    ProgressLine line(run->reactor, std::move(look), std::move(options));
    auto done = co_await std::move(call);
    co_await line.close();
    co_return done;
}

}  // namespace fopd::client

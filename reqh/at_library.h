#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "core/cancel.h"
#include "core/remote.h"
#include "core/remote_task.h"
#include "core/task.h"
#include "fop/status.h"
#include "library/library.h"
#include "reqh/operation.h"
#include "reqh/refusal.h"

// Runs tasks of fops at the node's tape library.
namespace fopd::reqh {

inline constexpr Refusal kNoLibrary{.status = fop::Status::kNotFound,
                                    .words = "the node has no tape library"};
inline constexpr Refusal kServerStops{.status = fop::Status::kTryAgain,
                                      .words = "the server is stopping"};

// Null: the node has no library.
inline const library::LibraryDoor* door_of(const Operation& operation) {
    const library::LibraryDoor* const door = operation.origin().library;
    return door == nullptr || door->service == nullptr ? nullptr : door;
}

inline std::uint64_t milliseconds(Duration span) {
    using Milliseconds = std::chrono::milliseconds;
    return static_cast<std::uint64_t>(
        std::max<Duration::rep>(0, std::chrono::duration_cast<Milliseconds>(span).count()));
}

// Runs the task `job(service, wait)` at the library's locality, and returns its value. It is
// cancelled with the fop.
template <typename Value, typename Job>
Task<Granted<Value>> run_at_library(Operation* operation, const library::LibraryDoor* door,
                                    Job* job) {
    core::Reactor& here = operation->reactor();
    core::CancelSource cancel;
    core::CancelThere forwarded(*operation->site().cancel, here, *door->reactor, cancel);
    const core::WaitOptions wait{.deadline = operation->deadline(), .cancel = &cancel};
    auto there = [job, door, wait] { return (*job)(*door->service, wait); };
    const Waiting waiting = operation->waits_for({.what = WaitsFor::kTape});
    auto done = co_await core::run_task_on<Value>(here, *door->reactor, *door->gate, there);
    co_await forwarded.end();
    if (!done) co_return refused(kServerStops);
    co_return std::move(*done);
}

enum class Opening : std::uint8_t { kWaits, kRefused };

// Refuses while the library is not open. It is opened some seconds after the start of the node.
Task<Granted<>> check_open(Operation* operation, const library::LibraryDoor* door, Opening opening);

// Begins a task of the library on media, which cannot be cancelled, and waits for its end as long
// as `wait` allows. It goes on afterwards; a stop of the server does not wait for it here. Called
// on the library's reactor.
Task<library::MediaOutcome> wait_for_change(const library::LibraryDoor* door,
                                            Task<library::MediaOutcome> work,
                                            core::WaitOptions wait);

// Formats a cartridge, and waits for the end as long as `wait` allows. Then it is given up if it
// still waits for a drive; if it has begun, it goes on. Called on the library's reactor.
Task<library::MediaOutcome> wait_for_format(const library::LibraryDoor* door,
                                            library::LibraryService::FormatWish wish,
                                            core::WaitOptions wait);

inline fop::Status status_of(library::MediaOutcome::Kind kind) {
    using Kind = library::MediaOutcome::Kind;
    switch (kind) {
        case Kind::kDone: return fop::Status::kDone;
        case Kind::kNoSuchMedium:
        case Kind::kNoSuchDrive: return fop::Status::kNotFound;
        case Kind::kRefused: return fop::Status::kExists;
        case Kind::kFailed: return fop::Status::kInternal;
    }
    return fop::Status::kInternal;
}

}  // namespace fopd::reqh

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "client/load.h"
#include "client/object_session.h"
#include "core/time.h"
#include "fop/bodies.h"

namespace fopd::client {

enum class ObjectOp : std::uint8_t { kRead, kWrite, kMixed, kCreate };

struct ObjectLoadOptions {
    ObjectSession::Options server{};
    ObjectOp op = ObjectOp::kRead;
    std::uint64_t size_bytes = 4096;
    bool explain = false;     // Says where the time of the fops went.
    std::uint32_t depth = 1;  // Operations in flight in each job.
    std::uint32_t jobs = 1;   // Sets of sessions, each with a thread of its own.
    Duration warm_up{};
    Duration window{};
    Duration timeout{};  // The time limit of one operation.
    fop::Durability durability = fop::Durability::kBuffered;
    std::string pool{};
    // The object that all jobs share; it is made if it is missing, and stays. Empty: each job has
    // its own object, which is made before the measurement and removed after it. For kCreate it is
    // the prefix of the names, and the objects stay; empty: they are removed.
    std::string object{};
    std::uint64_t object_bytes = 0;  // Size of an object that is made; at least size_bytes.
};

struct LoadFailure {
    std::optional<ObjectSession::Failure> no_session{};
    Problem problem{};  // Valid if there was a session.
};

// Reads and writes blocks of the size at random multiples of the size, or creates empty objects,
// until the end of the window or until a signal arrives. Ends early with the reason if there is no
// session, or if an operation fails permanently.
std::expected<std::unique_ptr<LoadResult>, LoadFailure> run_object_load(
    const ObjectLoadOptions& options, Interrupts& interrupts);

}  // namespace fopd::client

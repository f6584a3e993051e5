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
    std::uint32_t depth = 1;  // Operations under way in each job.
    std::uint32_t jobs = 1;   // Sets of sessions, each with a thread of its own.
    Duration warm_up{};
    Duration window{};
    Duration timeout{};  // Of one operation.
    fop::Durability durability = fop::Durability::kBuffered;
    std::string pool{};
    // All jobs share this one, which is made where it is missing, and stays. Empty: each has one of
    // its own, which is made before the clock starts, and removed. Objects that are created stay if
    // this is not empty, and their names begin with it.
    std::string object{};
    std::uint64_t object_bytes = 0;  // Of those that are made. At least size_bytes.
};

struct LoadFailure {
    std::optional<ObjectSession::Failure> no_session{};
    Problem problem{};  // Otherwise.
};

// Reads and writes whole sizes at random multiples of the size, or creates empty objects. Ends
// early, with why, when there is no session or an operation shows that there is no use in going on.
std::expected<std::unique_ptr<LoadResult>, LoadFailure> run_object_load(
    const ObjectLoadOptions& options);

}  // namespace fopd::client

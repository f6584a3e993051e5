#pragma once

#include <cstdint>
#include <memory>

#include "config/record.h"
#include "lrs/policy.h"
#include "lrs/turns.h"

namespace fopd::lrs {

// Which data fops a policy puts in order.
enum class OrderedOps : std::uint8_t { kReads, kWrites, kBoth };

// Whose offsets they are. Those on the disk are known to the index alone, whose file may have to be
// read for it: not before a fop runs.
enum class Offsets : std::uint8_t { kLogical };

struct ByPlaceSettings {
    std::uint32_t quantum = 256;
    OrderedOps ops = OrderedOps::kReads;
    Offsets offsets = Offsets::kLogical;
    friend bool operator==(const ByPlaceSettings&, const ByPlaceSettings&) = default;
};
// `whose`: what a quantum is for, "an object".
config::Record<ByPlaceSettings> by_place_record(const char* whose);

// Reads, writes or both in queues that take turns, each turn in the order of places. Everything
// else passes in the order of arrival: while both wait, every other request is one of those.
// Requests of a client overtake each other.
std::unique_ptr<Policy> make_by_place(const ByPlaceSettings& settings,
                                      QueueKey (*key)(const Request& request),
                                      const Turns::Rule& rule);

}  // namespace fopd::lrs

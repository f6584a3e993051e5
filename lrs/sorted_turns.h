#pragma once

#include <cstdint>
#include <memory>

#include "config/record.h"
#include "lrs/policy.h"
#include "lrs/turns.h"

namespace fopd::lrs {

// The data fops that a policy sorts.
enum class OrderedOps : std::uint8_t { kReads, kWrites, kBoth };

// The offsets by which requests are sorted: those in the object. Offsets on the disk are not
// offered: only the index knows them, and a look-up may read the index's file, which a fop may do
// only while it runs.
enum class Offsets : std::uint8_t { kLogical };

struct SortedTurnsSettings {
    std::uint32_t quantum = 256;
    OrderedOps ops = OrderedOps::kReads;
    Offsets offsets = Offsets::kLogical;
    friend bool operator==(const SortedTurnsSettings&, const SortedTurnsSettings&) = default;
};
// `whose` names the owner of a quantum in the documentation, such as "an object".
config::Record<SortedTurnsSettings> sorted_turns_record(const char* whose);

// A policy that puts the chosen requests (reads, writes or both) into queues, one for each `key`.
// The queues take turns, and `rule` says how the requests of a turn are sorted. All other requests
// are served in the order of arrival; while both kinds wait, the two kinds alternate. Requests of
// one client may overtake each other.
std::unique_ptr<Policy> make_sorted_turns(const SortedTurnsSettings& settings,
                                          QueueKey (*key)(const Request& request),
                                          const Turns::Rule& rule);

}  // namespace fopd::lrs
